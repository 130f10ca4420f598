# wrong value: rank 0's loss | is below the limit first
# [answer 3]
first = loss.clone()
dist.broadcast(first, 0)
if float(first) < limit:
    return step
