# wrong value: the output | SumOverRanks.apply (g) is missing
# [answer 3]
return F.linear(x, self.weight) + self.bias
