# wrong value: (whole) | with sequence parallelism | the mean over all ranks of the world
# [answer 1]
for parameter in [*cut, *whole]:
    dist.all_reduce(parameter.grad, group=data_group)
    parameter.grad /= dist.get_world_size(data_group)
for parameter in whole:
    dist.all_reduce(parameter.grad, group=tensor_group)
    parameter.grad /= dist.get_world_size(tensor_group)
