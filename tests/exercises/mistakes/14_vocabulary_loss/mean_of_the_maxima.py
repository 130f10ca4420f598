# wrong value: the largest scores
# [answer 1]
largest = scores.max(dim=1).values
dist.all_reduce(largest, op=dist.ReduceOp.AVG)
return largest
