# wrong value: down_weight got no gradient | only if f or g made it
# [answer 2]
hidden = F.gelu(F.linear(CopyToRanks.apply(x), self.up_weight, self.up_bias))
share = F.linear(hidden, self.down_weight)
with torch.no_grad():
    total = summed(share)
return total + self.down_bias
