# wrong value: a rank other than 0
# [answer 1]
mean = loss.clone()
dist.all_reduce(mean)
return float(mean / dist.get_world_size())
