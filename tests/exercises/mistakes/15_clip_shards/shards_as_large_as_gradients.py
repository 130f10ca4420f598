# exception, torch>=2.10: raised runtimeerror: check failed: outputshape
# [answer 1]
world_size = dist.get_world_size()
for gradient in gradients:
    shard = torch.empty_like(gradient)
    dist.reduce_scatter_tensor(shard, gradient)
    shards.append(shard / world_size)
