# wrong value: the norm on | without the root
# [answer 2]
squares = sum(parameter.grad.square().sum() for parameter in cut)
dist.all_reduce(squares, group=tensor_group)
return squares + sum(parameter.grad.square().sum() for parameter in whole)
