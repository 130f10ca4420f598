# wrong value: too big | that is not clipped | never divided by the world size
# [answer 1]
for gradient in gradients:
    shard = gradient.new_empty(len(gradient) // dist.get_world_size())
    dist.reduce_scatter_tensor(shard, gradient)
    shards.append(shard)
