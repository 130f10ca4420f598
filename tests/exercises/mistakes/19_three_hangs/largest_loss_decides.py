# wrong value: the largest loss of the ranks | is below the limit first
# [answer 3]
largest = loss.clone()
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
if float(largest) < limit:
    return step
