# wrong value: if all are negative | cut off at 0
# [answer 1]
largest = scores.max(dim=1).values.clamp(min=0)
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
return largest
