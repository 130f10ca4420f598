# wrong value: the output | without up_bias
# [answer 2]
hidden = F.gelu(F.linear(CopyToRanks.apply(x), self.up_weight))
return SumOverRanks.apply(F.linear(hidden, self.down_weight)) + self.down_bias
