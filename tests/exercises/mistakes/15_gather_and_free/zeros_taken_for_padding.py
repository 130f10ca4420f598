# wrong value: the weight of 7 rows | has shape
# [answer 1]
whole = shard.new_empty(len(shard) * dist.get_world_size(), shard.shape[1])
dist.all_gather_into_tensor(whole, shard)
return whole[whole.abs().sum(dim=1) > 0]
