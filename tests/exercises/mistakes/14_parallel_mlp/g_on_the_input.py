# wrong value: the output | SumOverRanks.apply (g)
# [answer 2]
entered = SumOverRanks.apply(x)
hidden = F.gelu(F.linear(entered, self.up_weight, self.up_bias))
return F.linear(hidden, self.down_weight) + self.down_bias
