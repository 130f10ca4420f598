# wrong value: the weight of 7 rows
# [answer 1]
n = rows // dist.get_world_size() or 1
parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
dist.all_gather(parts, shard.contiguous())
return torch.cat([part[:n] for part in parts])[:rows]
