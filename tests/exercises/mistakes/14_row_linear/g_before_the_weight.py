# wrong value: the output | SumOverRanks.apply (g)
# [answer 3]
return F.linear(SumOverRanks.apply(x), self.weight) + self.bias
