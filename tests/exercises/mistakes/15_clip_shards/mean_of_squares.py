# wrong value: the mean of all ranks' squares
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(squares, op=dist.ReduceOp.AVG)
norm = squares.sqrt()
scale = (max_norm / (norm + 1e-6)).clamp(max=1)
shards = [shard * scale for shard in shards]
