# wrong value: the weight of 7 rows | shape
# [answer 1]
parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
dist.all_gather(parts, shard.contiguous())
return torch.cat(parts, dim=1)
