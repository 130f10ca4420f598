# wrong value: the sum of the shares | of the expected value
# [answer 1]
total = share.clone()
dist.all_reduce(total, op=dist.ReduceOp.AVG)
return total
