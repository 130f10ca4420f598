# wrong value: down_bias shares its memory with the whole
# [answer 1]
self.up_weight = own_part(up.weight, dim=0)
self.up_bias = own_part(up.bias, dim=0)
self.down_weight = own_part(down.weight, dim=1)
self.down_bias = down.bias
