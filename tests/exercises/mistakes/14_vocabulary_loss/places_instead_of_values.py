# wrong value: the largest scores
# [answer 1]
largest = scores.max(dim=1).indices
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
return largest
