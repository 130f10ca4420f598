# wrong value: bias
# [answer 2]
rank, world_size = dist.get_rank(), dist.get_world_size()
self.weight = nn.Parameter(whole.weight.detach().chunk(world_size)[rank].clone())
bias = whole.bias.detach().chunk(world_size)[rank]
self.bias = nn.Parameter(bias / world_size)
