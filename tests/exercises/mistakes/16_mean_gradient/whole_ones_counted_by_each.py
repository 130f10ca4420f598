# wrong value: the norm on | whole parameters counted by each rank
# [answer 2]
squares = sum(parameter.grad.square().sum() for parameter in [*cut, *whole])
dist.all_reduce(squares, group=tensor_group)
return squares.sqrt()
