# wrong value: the output | SumOverRanks.apply (g) is missing
# [answer 2]
hidden = F.gelu(F.linear(CopyToRanks.apply(x), self.up_weight, self.up_bias))
return F.linear(hidden, self.down_weight, self.down_bias)
