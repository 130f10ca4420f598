# wrong value: the gradient of the input x | CopyToRanks.apply (f) is missing
# [answer 2]
hidden = F.gelu(F.linear(x, self.up_weight, self.up_bias))
return SumOverRanks.apply(F.linear(hidden, self.down_weight)) + self.down_bias
