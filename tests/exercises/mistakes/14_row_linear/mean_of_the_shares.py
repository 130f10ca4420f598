# wrong value: the sum of the shares | the mean of the shares, where their sum is wanted
# [answer 1]
total = share.clone()
dist.all_reduce(total, op=dist.ReduceOp.AVG)
return total
