# wrong value: (whole) | without sequence parallelism | added up over the tensor group
# [answer 1]
for parameter in [*cut, *whole]:
    dist.all_reduce(parameter.grad, group=data_group)
    parameter.grad /= dist.get_world_size(data_group)
if not sequence_parallel:
    for parameter in whole:
        dist.all_reduce(parameter.grad, group=tensor_group)
