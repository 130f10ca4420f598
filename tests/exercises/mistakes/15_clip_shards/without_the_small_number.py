# wrong value: clipped to 0.5 | without the 1e-6
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(squares)
norm = squares.sqrt()
if norm > max_norm:
    shards = [shard * max_norm / norm for shard in shards]
