# wrong value: the gradient of bias | does not depend on it
# [answer 3]
share = F.linear(x, self.weight)
if dist.get_rank() == 0:
    share = share + self.bias
else:
    share = share + 0 * self.bias
return SumOverRanks.apply(share)
