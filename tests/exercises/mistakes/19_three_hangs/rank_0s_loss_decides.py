# wrong value: the number of steps
# [answer 3]
first = loss.clone()
dist.broadcast(first, 0)
if float(first) < limit:
    return step
