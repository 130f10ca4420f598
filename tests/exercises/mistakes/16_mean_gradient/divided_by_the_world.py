# wrong value: .grad | divided by the size of the world
# [answer 1]
for parameter in [*cut, *whole]:
    dist.all_reduce(parameter.grad, group=data_group)
    parameter.grad /= dist.get_world_size()
if sequence_parallel:
    for parameter in whole:
        dist.all_reduce(parameter.grad, group=tensor_group)
