# wrong value: .grad after gradient_norm
# [answer 2]
squares = sum(parameter.grad.square_().sum() for parameter in cut)
dist.all_reduce(squares, group=tensor_group)
squares += sum(parameter.grad.square_().sum() for parameter in whole)
return squares.sqrt()
