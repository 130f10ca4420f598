# wrong value: the gradient of weight | of the expected value
# [answer 2]
return gradient / dist.get_world_size()
