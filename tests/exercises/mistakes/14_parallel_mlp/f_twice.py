# wrong value: the gradient of the input x | 3 times too big: added up
# [answer 2]
entered = CopyToRanks.apply(CopyToRanks.apply(x))
hidden = F.gelu(F.linear(entered, self.up_weight, self.up_bias))
return SumOverRanks.apply(F.linear(hidden, self.down_weight)) + self.down_bias
