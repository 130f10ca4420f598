# wrong value: the gradients that were given, afterwards
# [answer 1]
for gradient in gradients:
    dist.all_reduce(gradient, op=dist.ReduceOp.AVG)
    shards.append(gradient.chunk(dist.get_world_size())[dist.get_rank()].clone())
