# wrong value: would not be trained
# [answer 2]
rank, world_size = dist.get_rank(), dist.get_world_size()
weight = whole.weight.detach().chunk(world_size)[rank].clone()
self.weight = nn.Parameter(weight, requires_grad=False)
self.bias = nn.Parameter(whole.bias.detach().chunk(world_size)[rank].clone())
