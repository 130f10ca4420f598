# wrong value: weight has shape
# [answer 2]
rank, size = dist.get_rank(), len(whole.bias) // dist.get_world_size()
part = slice(rank * size, (rank + 1) * size)
self.weight = nn.Parameter(whole.weight.detach()[part].clone())
self.bias = nn.Parameter(whole.bias.detach()[part].clone())
