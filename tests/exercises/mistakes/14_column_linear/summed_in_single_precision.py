# wrong value: the gradient of the input x | as if rounded or computed in a shorter dtype
# [answer 1]
total = gradient.float()
dist.all_reduce(total)
return total.to(gradient.dtype)
