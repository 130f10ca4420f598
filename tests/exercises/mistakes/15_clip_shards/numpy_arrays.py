# wrong value: average_and_clip | list of ndarray
# [answer 2]
square = torch.cat(shards).square().sum()
dist.all_reduce(square)
norm = square.sqrt()
scale = min(1.0, max_norm / (norm.item() + 1e-6))
shards = [(shard * scale).numpy() for shard in shards]
