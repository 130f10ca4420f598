# wrong way: never waited for the Work of all_reduce
# [answer 1]
for parameter in [*cut, *whole]:
    parameter.grad /= dist.get_world_size(data_group)
    dist.all_reduce(parameter.grad, group=data_group, async_op=True)
if sequence_parallel:
    for parameter in whole:
        dist.all_reduce(parameter.grad, group=tensor_group)
