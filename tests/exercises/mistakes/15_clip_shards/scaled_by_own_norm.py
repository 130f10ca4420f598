# wrong value: scaled by the norm of this rank's own shards
# [answer 2]
squares = sum(shard.square().sum() for shard in shards)
scale = (max_norm / (squares.sqrt() + 1e-6)).clamp(max=1)
dist.all_reduce(squares)
norm = squares.sqrt()
shards = [shard * scale for shard in shards]
