# wrong value: the output | SumOverRanks.apply (g)
# [answer 2]
hidden = F.gelu(F.linear(CopyToRanks.apply(x), self.up_weight, self.up_bias))
share = F.linear(SumOverRanks.apply(hidden), self.down_weight)
return share + self.down_bias
