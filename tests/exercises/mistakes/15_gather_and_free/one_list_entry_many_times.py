# wrong value: the weight of 7 rows | [t] * world_size
# [answer 1]
parts = [torch.empty_like(shard)] * dist.get_world_size()
dist.all_gather(parts, shard.contiguous())
return torch.cat(parts)[:rows]
