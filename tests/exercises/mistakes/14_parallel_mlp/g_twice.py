# wrong value: the output | SumOverRanks.apply (g) twice
# [answer 2]
hidden = F.gelu(F.linear(CopyToRanks.apply(x), self.up_weight, self.up_bias))
share = SumOverRanks.apply(F.linear(hidden, self.down_weight))
return SumOverRanks.apply(share) + self.down_bias
