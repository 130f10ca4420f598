# wrong value: the norm on
# [answer 2]
squares = sum(parameter.detach().square().sum() for parameter in cut)
dist.all_reduce(squares, group=tensor_group)
squares += sum(parameter.detach().square().sum() for parameter in whole)
return squares.sqrt()
