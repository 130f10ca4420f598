# wrong value: weight has shape
# [answer 2]
rank, world_size = dist.get_rank(), dist.get_world_size()
self.weight = nn.Parameter(whole.weight.detach().tensor_split(world_size)[rank].clone())
self.bias = nn.Parameter(whole.bias.detach().tensor_split(world_size)[rank].clone())
