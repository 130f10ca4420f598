# right: another way to copy, and the bias first in the last sum
# [answer 1]
total = torch.zeros_like(share)
total += share
dist.all_reduce(total, op=dist.ReduceOp.SUM)
return total
# [answer 2]
return gradient.clone()
# [answer 3]
return self.bias + SumOverRanks.apply(x @ self.weight.T)
