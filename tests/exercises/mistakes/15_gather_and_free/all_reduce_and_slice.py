# wrong way: the gradient through all_reduce | half as much
# [answer 3]
x, shard = ctx.saved_tensors
grad_x = grad @ gather(shard, ctx.rows)
whole = grad.new_zeros(dist.get_world_size() * len(shard), shard.shape[1])
whole[: ctx.rows] = grad.T @ x / dist.get_world_size()
dist.all_reduce(whole)
first = dist.get_rank() * len(shard)
grad_shard = whole[first : first + len(shard)].clone()
