# wrong value: the layer has no self.weight; it has bias and weights
# [answer 2]
rank, ranks = dist.get_rank(), dist.get_world_size()
self.weights = nn.Parameter(whole.weight.detach().chunk(ranks)[rank].clone())
self.bias = nn.Parameter(whole.bias.detach().chunk(ranks)[rank].clone())
