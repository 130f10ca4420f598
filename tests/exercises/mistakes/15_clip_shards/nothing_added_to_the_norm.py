# wrong value: of zeros | a division by zero
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(squares)
norm = squares.sqrt()
scale = (max_norm * (1 - 1e-6 / norm) / norm).clamp(max=1)
shards = [shard * scale for shard in shards]
