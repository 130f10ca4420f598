# wrong value: a shard of
# [answer 1]
for gradient in gradients:
    world_size = dist.get_world_size()
    parts = list(gradient.view(-1, world_size).T.contiguous() / world_size)
    shard = torch.empty_like(parts[0])
    dist.reduce_scatter(shard, parts)
    shards.append(shard)
