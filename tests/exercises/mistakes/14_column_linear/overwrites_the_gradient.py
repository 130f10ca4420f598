# wrong value: the gradient of what was added to f(x) | overwritten | sum a copy
# [answer 1]
dist.all_reduce(gradient)
return gradient
