# wrong value: the epoch that all ranks resume from
# [answer 2]
count = torch.tensor(len(own))
dist.all_reduce(count, dist.ReduceOp.MIN)
return own[-int(count)] if count else None
