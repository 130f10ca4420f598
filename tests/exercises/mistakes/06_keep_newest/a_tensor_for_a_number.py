# wrong value: agree_on_newest | returned Tensor, expected int
# [answer 2]
length = torch.tensor(max(own, default=0) + 1)
dist.all_reduce(length, dist.ReduceOp.MAX)
have = torch.zeros(int(length), dtype=torch.int32)
have[own] = 1
dist.all_reduce(have, dist.ReduceOp.MIN)
common = have.nonzero().flatten()
return common[-1] if len(common) else None
