# wrong value: the gradient of | CopyToRanks.apply (f) comes after
# [answer 2]
hidden = F.gelu(F.linear(x, self.up_weight, self.up_bias))
share = F.linear(CopyToRanks.apply(hidden), self.down_weight)
return SumOverRanks.apply(share) + self.down_bias
