# wrong value: the mean over all samples | unequal counts
mean = values.mean()
dist.all_reduce(mean)
return mean / dist.get_world_size()
