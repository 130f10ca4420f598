# wrong value: the number of steps
# [answer 3]
largest = loss.clone()
dist.all_reduce(largest, op=dist.ReduceOp.MAX)
if float(largest) < limit:
    return step
