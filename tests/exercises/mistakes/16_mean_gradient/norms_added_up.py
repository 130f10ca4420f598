# wrong value: the norm on
# [answer 2]
norm = sum(parameter.grad.square().sum() for parameter in cut).sqrt()
dist.all_reduce(norm, group=tensor_group)
return norm + sum(parameter.grad.square().sum() for parameter in whole).sqrt()
