# wrong value: the output | times the bias
# [answer 3]
return SumOverRanks.apply(F.linear(x, self.weight, self.bias))
