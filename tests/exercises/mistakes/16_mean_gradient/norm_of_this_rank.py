# wrong value: the norm on | this rank's own value
# [answer 2]
return sum(parameter.grad.square().sum() for parameter in [*cut, *whole]).sqrt()
