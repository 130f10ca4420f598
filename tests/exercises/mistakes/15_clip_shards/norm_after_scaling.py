# wrong value: the norm clipped to 0.5 | after the scaling
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(squares)
scale = (max_norm / (squares.sqrt() + 1e-6)).clamp(max=1)
shards = [shard * scale for shard in shards]
norm = squares.sqrt() * scale
