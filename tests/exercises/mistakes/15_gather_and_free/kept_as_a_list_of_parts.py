# wrong way: still holds the whole weight
# [answer 1]
parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
dist.all_gather(parts, shard.contiguous())
gather.parts = parts
return torch.cat(parts)[:rows]
