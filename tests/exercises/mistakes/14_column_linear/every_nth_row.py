# wrong value: weight
# [answer 2]
rank, world_size = dist.get_rank(), dist.get_world_size()
self.weight = nn.Parameter(whole.weight.detach()[rank::world_size].clone())
self.bias = nn.Parameter(whole.bias.detach()[rank::world_size].clone())
