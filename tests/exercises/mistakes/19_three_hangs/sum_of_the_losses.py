# wrong value: the sum of the ranks' losses | is below the limit first
# [answer 3]
total = loss.clone()
dist.all_reduce(total)
if float(total) < limit:
    return step
