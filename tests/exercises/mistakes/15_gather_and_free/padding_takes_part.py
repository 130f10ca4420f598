# wrong value: the weight of 7 rows | shape
# [answer 1]
whole = shard.new_empty(dist.get_world_size() * len(shard), shard.shape[1])
dist.all_gather_into_tensor(whole, shard.contiguous())
return whole
