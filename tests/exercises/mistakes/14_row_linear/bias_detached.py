# wrong value: bias got no gradient | does not depend on it
# [answer 3]
return SumOverRanks.apply(F.linear(x, self.weight)) + self.bias.detach()
