# wrong value: if all are negative
# [answer 1]
largest = scores.max(dim=1).values.clamp(min=0)
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
return largest
