# wrong value: is off by 3 times the bias: each rank adds it to its share and again to the sum
# [answer 3]
return SumOverRanks.apply(F.linear(x, self.weight, self.bias)) + self.bias
