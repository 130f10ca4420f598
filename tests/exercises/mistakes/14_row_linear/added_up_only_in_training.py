# wrong value: the output in evaluation | sumoverranks.apply (g) is missing
# [answer 3]
share = F.linear(x, self.weight)
if self.training:
    share = SumOverRanks.apply(share)
return share + self.bias
