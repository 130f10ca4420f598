# wrong value: the number of steps
# [answer 3]
total = loss.clone()
dist.all_reduce(total)
if float(total) < limit:
    return step
