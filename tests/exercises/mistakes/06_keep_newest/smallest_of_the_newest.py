# wrong value: the epoch that all ranks resume from | is 4, expected 3
# [answer 2]
newest = torch.tensor(own[0] if own else 0)
dist.all_reduce(newest, dist.ReduceOp.MIN)
return int(newest) or None
