# wrong value: the whole layer's parameters no longer require gradients
# [answer 2]
N, me = dist.get_world_size(), dist.get_rank()
whole.requires_grad_(False)
self.weight = nn.Parameter(whole.weight.chunk(N)[me].clone())
self.bias = nn.Parameter(whole.bias.chunk(N)[me].clone())
