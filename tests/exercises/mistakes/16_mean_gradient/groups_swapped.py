# wrong value: scale.grad | the mean over the tensor group alone
# [answer 1]
for parameter in [*cut, *whole]:
    dist.all_reduce(parameter.grad, group=tensor_group)
    parameter.grad /= dist.get_world_size(tensor_group)
if sequence_parallel:
    for parameter in whole:
        dist.all_reduce(parameter.grad, group=data_group)
