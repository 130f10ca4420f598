# wrong way: never waited for the Work of all_gather | keep the Work
# [answer 1]
whole = shard.new_zeros(dist.get_world_size() * len(shard), shard.shape[1])
dist.all_gather_into_tensor(whole, shard.contiguous(), async_op=True)
return whole[:rows].clone()
