# wrong value: the gradient of bias | 1/3 of it: divided
# [answer 3]
share = F.linear(x, self.weight, self.bias / dist.get_world_size())
return SumOverRanks.apply(share)
