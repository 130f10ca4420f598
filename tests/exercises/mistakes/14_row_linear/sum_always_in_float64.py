# wrong value: the output in float32 | has dtype float64, expected float32
# [answer 1]
total = share.double().clone()
dist.all_reduce(total)
return total
