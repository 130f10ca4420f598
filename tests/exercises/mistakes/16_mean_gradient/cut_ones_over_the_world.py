# wrong value: the norm on | added up over the whole world
# [answer 2]
squares = sum(parameter.grad.square().sum() for parameter in cut)
dist.all_reduce(squares)
squares += sum(parameter.grad.square().sum() for parameter in whole)
return squares.sqrt()
