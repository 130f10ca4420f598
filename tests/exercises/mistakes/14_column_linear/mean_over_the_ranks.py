# wrong value: the gradient of the input x | of the expected value
# [answer 1]
total = gradient.clone()
dist.all_reduce(total)
return total / dist.get_world_size()
