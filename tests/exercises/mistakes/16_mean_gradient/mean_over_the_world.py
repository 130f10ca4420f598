# wrong value: up.grad (cut) | the mean over all ranks of the world
# [answer 1]
for parameter in [*cut, *whole]:
    dist.all_reduce(parameter.grad)
    parameter.grad /= dist.get_world_size()
