# wrong value: the gradients that were given, afterwards
# [answer 1]
for gradient in gradients:
    gradient /= dist.get_world_size()
    shard = gradient.new_empty(len(gradient) // dist.get_world_size())
    dist.reduce_scatter_tensor(shard, gradient)
    shards.append(shard)
