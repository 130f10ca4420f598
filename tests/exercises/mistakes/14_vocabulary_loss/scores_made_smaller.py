# wrong value: the scores that were given, afterwards
# [answer 1]
largest = scores.max(dim=1).values
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
scores -= largest[:, None]
return largest
