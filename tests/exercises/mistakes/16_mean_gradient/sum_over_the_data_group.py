# wrong value: scale.grad | the sum over the data group
# [answer 1]
for parameter in [*cut, *whole]:
    dist.all_reduce(parameter.grad, group=data_group)
if sequence_parallel:
    for parameter in whole:
        dist.all_reduce(parameter.grad, group=tensor_group)
