# wrong value: the gradient of the input x | the mean over the ranks, where their sum is wanted
# [answer 1]
total = gradient.clone()
dist.all_reduce(total)
return total / dist.get_world_size()
