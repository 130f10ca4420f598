# exception: for *: 'function' and 'int' | call it, with `()`
# [answer 2]
rank = dist.get_rank
n = whole.out_features // dist.get_world_size()
self.weight = nn.Parameter(whole.weight.detach()[rank * n:(rank + 1) * n].clone())
self.bias = nn.Parameter(whole.bias.detach()[rank * n:(rank + 1) * n].clone())
