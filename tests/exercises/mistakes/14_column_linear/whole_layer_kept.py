# wrong value: the layer also holds
# [answer 2]
rank, world_size = dist.get_rank(), dist.get_world_size()
self.whole = whole
self.weight = nn.Parameter(whole.weight.detach().chunk(world_size)[rank].clone())
self.bias = nn.Parameter(whole.bias.detach().chunk(world_size)[rank].clone())
