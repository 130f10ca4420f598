# wrong value: the output
# [answer 3]
share = SumOverRanks.apply(F.linear(x, self.weight))
return share + self.bias / dist.get_world_size()
