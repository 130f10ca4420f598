# wrong way: the hook waits
# [answer 2]
dist.all_reduce(parameter.grad)
parameter.grad /= dist.get_world_size()
# [answer 3]
pass
