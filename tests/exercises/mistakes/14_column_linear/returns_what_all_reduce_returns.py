# wrong value: the input x got no gradient | as all_reduce does
# [answer 1]
return dist.all_reduce(gradient.contiguous())
