# wrong value: the largest scores
# [answer 1]
largest = scores.max().expand(len(scores)).contiguous()
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
return largest
