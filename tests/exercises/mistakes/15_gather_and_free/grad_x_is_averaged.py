# wrong value: the gradient of the input
# [answer 3]
x, shard = ctx.saved_tensors
grad_x = grad @ gather(shard, ctx.rows)
dist.all_reduce(grad_x)
grad_x /= dist.get_world_size()
whole = grad.new_zeros(dist.get_world_size() * len(shard), shard.shape[1])
whole[: ctx.rows] = grad.T @ x / dist.get_world_size()
grad_shard = torch.empty_like(shard)
dist.reduce_scatter_tensor(grad_shard, whole)
