# wrong value: (cut)
# [answer 1]
for parameter in whole:
    dist.all_reduce(parameter.grad, group=data_group)
    parameter.grad /= dist.get_world_size(data_group)
    if sequence_parallel:
        dist.all_reduce(parameter.grad, group=tensor_group)
