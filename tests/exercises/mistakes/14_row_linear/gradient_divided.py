# wrong value: the gradient of weight | 1/3 of it: divided
# [answer 2]
return gradient / dist.get_world_size()
