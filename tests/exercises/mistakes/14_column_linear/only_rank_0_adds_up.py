# wrong value: the gradient of the input x | only one rank holds the result
# [answer 1]
total = gradient.contiguous().clone()
dist.reduce(total, dst=0)
return total if dist.get_rank() == 0 else gradient
