# wrong value: clipped to | on each rank by its own norm, before the mean
# [answer 1]
squares = torch.stack([g.square().sum() for g in gradients]).sum()
scale = (max_norm / (squares.sqrt() + 1e-6)).clamp(max=1)
for gradient in gradients:
    shard = gradient.new_empty(len(gradient) // dist.get_world_size())
    dist.reduce_scatter_tensor(shard, gradient * scale / dist.get_world_size())
    shards.append(shard)
# [answer 2]
squares = torch.stack([shard.square().sum() for shard in shards]).sum()
dist.all_reduce(squares)
norm = squares.sqrt()
