# wrong way: one number from each rank
# [answer 2]
squares = torch.zeros((), dtype=gradients[0].dtype)
for shard in shards:
    whole = shard.new_empty(dist.get_world_size() * len(shard))
    dist.all_gather_into_tensor(whole, shard)
    squares += whole.square().sum()
norm = squares.sqrt()
scale = (max_norm / (norm + 1e-6)).clamp(max=1)
shards = [shard * scale for shard in shards]
