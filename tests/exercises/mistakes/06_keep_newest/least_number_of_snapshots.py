# wrong value: the epoch that all ranks resume from
# [answer 2]
count = torch.tensor(len(mine))
dist.all_reduce(count, dist.ReduceOp.MIN)
return mine[-int(count)] if count else None
