# wrong value: isn't an nn.Parameter
# [answer 2]
rank, world_size = dist.get_rank(), dist.get_world_size()
self.weight = whole.weight.chunk(world_size)[rank]
self.bias = whole.bias.chunk(world_size)[rank]
