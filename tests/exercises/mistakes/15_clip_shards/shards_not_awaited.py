# wrong way: never waited for the Work of reduce_scatter | keep the Work
# [answer 1]
for gradient in gradients:
    shard = gradient.new_zeros(len(gradient) // dist.get_world_size())
    mean = gradient / dist.get_world_size()
    dist.reduce_scatter_tensor(shard, mean, async_op=True)
    shards.append(shard)
