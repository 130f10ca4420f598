# wrong value: the input x got no gradient | as all_reduce does (C05)
# [answer 1]
return dist.all_reduce(gradient.contiguous())
