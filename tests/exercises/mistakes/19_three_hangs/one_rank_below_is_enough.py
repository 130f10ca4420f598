# wrong value: the smallest loss of the ranks | is below the limit first
# [answer 3]
    least = loss.clone()
    dist.all_reduce(least, op=dist.ReduceOp.MIN)
    if float(least) < limit:
        return step
