# wrong value: the gradient of | f (CopyToRanks.apply) goes before up
# [answer 2]
hidden = F.gelu(F.linear(x, self.up_weight, self.up_bias))
share = F.linear(hidden, self.down_weight)
return CopyToRanks.apply(SumOverRanks.apply(share)) + self.down_bias
