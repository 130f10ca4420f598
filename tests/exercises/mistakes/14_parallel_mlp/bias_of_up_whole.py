# wrong value: up_bias has shape
# [answer 1]
self.up_weight = own_part(up.weight, dim=0)
self.up_bias = nn.Parameter(up.bias.detach().clone())
self.down_weight = own_part(down.weight, dim=1)
self.down_bias = nn.Parameter(down.bias.detach().clone())
