# wrong way: never waited for the Work of all_reduce | keep the Work
# [answer 1]
largest = scores.max(dim=1).values
dist.all_reduce(largest, op=dist.ReduceOp.MAX, async_op=True)
return largest
