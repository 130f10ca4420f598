# wrong value: a shard of
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(squares)
norm = squares.sqrt()
shards = [shard.clamp(-max_norm, max_norm) for shard in shards]
