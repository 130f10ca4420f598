# hang: all_reduce
# [answer 1]
for parameter in [*cut, *whole]:
    dist.all_reduce(parameter.grad, group=data_group)
    parameter.grad /= dist.get_world_size(data_group)
if sequence_parallel and dist.get_rank(tensor_group) == 0:
    for parameter in whole:
        dist.all_reduce(parameter.grad, group=tensor_group)
