# hang: all_reduce | only some ranks reach
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
if dist.get_rank() == 0:
    dist.all_reduce(squares)
norm = squares.sqrt()
scale = (max_norm / (norm + 1e-6)).clamp(max=1)
shards = [shard * scale for shard in shards]
