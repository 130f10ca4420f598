# wrong value: the output | SumOverRanks.apply (g)
# [answer 3]
return F.linear(x, SumOverRanks.apply(self.weight)) + self.bias
