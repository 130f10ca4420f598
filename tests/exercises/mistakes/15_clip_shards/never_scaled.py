# wrong value: clipped to 0.5 | is not scaled
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(squares)
norm = squares.sqrt()
