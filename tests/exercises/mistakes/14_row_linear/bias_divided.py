# wrong value: the gradient of bias | of the expected value
# [answer 3]
share = F.linear(x, self.weight, self.bias / dist.get_world_size())
return SumOverRanks.apply(share)
