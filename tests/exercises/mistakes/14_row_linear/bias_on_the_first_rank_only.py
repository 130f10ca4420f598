# wrong value: ranks 1 and 2: bias got no gradient | does not depend on it
# [answer 3]
share = F.linear(x, self.weight)
if dist.get_rank() == 0:
    share = share + self.bias
return SumOverRanks.apply(share)
