# wrong value: the output | SumOverRanks.apply (g) twice
# [answer 3]
share = SumOverRanks.apply(F.linear(x, self.weight))
return SumOverRanks.apply(share) + self.bias
