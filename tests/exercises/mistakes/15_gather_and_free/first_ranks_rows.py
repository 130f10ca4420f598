# wrong value: the weight of 7 rows
# [answer 1]
whole = shard.repeat(dist.get_world_size(), 1)
return whole[:rows]
