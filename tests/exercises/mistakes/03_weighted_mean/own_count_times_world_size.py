# wrong value: the mean over all samples
total = values.sum()
dist.all_reduce(total)
return total / (len(values) * dist.get_world_size())
