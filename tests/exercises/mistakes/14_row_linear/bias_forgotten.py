# wrong value: the output without its bias
# [answer 3]
return SumOverRanks.apply(F.linear(x, self.weight))
