# wrong value: that is not clipped
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(squares)
norm = squares.sqrt()
shards = [shard * (max_norm / (norm + 1e-6)) for shard in shards]
