# wrong value: the output | without gelu
# [answer 2]
hidden = F.linear(CopyToRanks.apply(x), self.up_weight, self.up_bias)
return SumOverRanks.apply(F.linear(hidden, self.down_weight)) + self.down_bias
