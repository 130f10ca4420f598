# wrong value: what was added to f(x)
# [answer 1]
dist.all_reduce(gradient)
return gradient
