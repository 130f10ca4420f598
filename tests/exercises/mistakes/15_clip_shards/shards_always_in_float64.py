# exception, torch>=2.10: (double vs. float) | in float32
# [answer 1]
for gradient in gradients:
    n = len(gradient) // dist.get_world_size()
    shard = torch.empty(n, dtype=torch.float64)
    dist.reduce_scatter_tensor(shard, gradient / dist.get_world_size())
    shards.append(shard)
