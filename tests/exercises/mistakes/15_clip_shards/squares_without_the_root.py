# wrong value: the norm of | is the square of the norm, without the root
# [answer 2]
norm = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(norm)
scale = (max_norm / (norm + 1e-6)).clamp(max=1)
shards = [shard * scale for shard in shards]
