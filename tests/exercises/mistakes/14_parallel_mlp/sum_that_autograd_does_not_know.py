# wrong value: gradient
# [answer 2]
hidden = F.gelu(F.linear(CopyToRanks.apply(x), self.up_weight, self.up_bias))
return summed(F.linear(hidden, self.down_weight).detach()) + self.down_bias
