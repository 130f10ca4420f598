# wrong value: the gradient of the input x | None
# [answer 1]
return dist.all_reduce(gradient.contiguous())
