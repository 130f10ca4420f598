# wrong way: numbers went through all_reduce | just its shard
# [answer 1]
for gradient in gradients:
    mean = gradient / dist.get_world_size()
    dist.all_reduce(mean)
    shards.append(mean.chunk(dist.get_world_size())[dist.get_rank()].clone())
