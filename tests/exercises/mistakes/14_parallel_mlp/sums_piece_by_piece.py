# wrong way: one all_reduce is enough
# [answer 2]
hidden = F.gelu(F.linear(CopyToRanks.apply(x), self.up_weight, self.up_bias))
shares = F.linear(hidden, self.down_weight)
sums = [SumOverRanks.apply(share) for share in shares.unbind()]
return torch.stack(sums) + self.down_bias
