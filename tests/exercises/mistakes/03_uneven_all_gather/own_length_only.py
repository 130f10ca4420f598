# wrong value: gather_lengths
# [answer 1]
return [length] * dist.get_world_size()
