# right: slices written out, and functions in a row
# [answer 1]
rank, parts = dist.get_rank(), dist.get_world_size()
each = -(-up.out_features // parts)
own = slice(rank * each, (rank + 1) * each)
self.up_weight = nn.Parameter(up.weight.data[own].clone())
self.up_bias = nn.Parameter(up.bias.data[own].clone())
self.down_weight = nn.Parameter(down.weight.data[:, own].clone())
self.down_bias = nn.Parameter(torch.empty_like(down.bias))
self.down_bias.data.copy_(down.bias.data)
# [answer 2]
x = CopyToRanks.apply(x)
x = torch.einsum("...i,hi->...h", x, self.up_weight).add(self.up_bias)
x = F.gelu(x, approximate="none") @ self.down_weight.t()
return self.down_bias + SumOverRanks.apply(x)
