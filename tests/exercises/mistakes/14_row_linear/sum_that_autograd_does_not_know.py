# wrong value: weight got no gradient
# [answer 3]
share = F.linear(x, self.weight).detach()
dist.all_reduce(share)
return share + self.bias
