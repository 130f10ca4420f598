# right, torch>=2.9: the mean by AVG, and a square for each layer in one all_reduce
# [answer 1]
world_size = dist.get_world_size()
for gradient in gradients:
    parts = list(gradient.chunk(world_size))
    shard = torch.empty_like(parts[0])
    dist.reduce_scatter(shard, parts, op=dist.ReduceOp.AVG)
    shards.append(shard)
# [answer 2]
squares = torch.stack([torch.dot(shard, shard) for shard in shards])
dist.all_reduce(squares)
norm = squares.sum() ** 0.5
if norm + 1e-6 > max_norm:
    shards = [shard * max_norm / (norm + 1e-6) for shard in shards]
