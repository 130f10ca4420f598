# wrong value: weight
# [answer 2]
world_size = dist.get_world_size()
self.weight = nn.Parameter(whole.weight.detach().chunk(world_size)[0].clone())
self.bias = nn.Parameter(whole.bias.detach().chunk(world_size)[0].clone())
