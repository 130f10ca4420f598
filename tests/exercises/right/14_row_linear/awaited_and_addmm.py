# right: an awaited sum in new memory, the layer by einsum
# [answer 1]
total = torch.empty_like(share).copy_(share)
dist.all_reduce(total, async_op=True).wait()
return total
# [answer 2]
return torch.ones_like(gradient) * gradient
# [answer 3]
share = torch.einsum("...i,oi->...o", x, self.weight)
return torch.add(SumOverRanks.apply(share), self.bias)
