# wrong value: the weight of 7 rows
# [answer 1]
parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
dist.all_gather(parts, shard.contiguous())
return torch.stack(parts, dim=1).flatten(0, 1)[:rows]
