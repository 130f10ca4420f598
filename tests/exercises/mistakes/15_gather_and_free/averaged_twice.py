# wrong value, torch>=2.9: the gradient of this rank's rows | of the expected value | divided by the world size twice
# [answer 3]
x, shard = ctx.saved_tensors
grad_x = grad @ gather(shard, ctx.rows)
whole = grad.new_zeros(dist.get_world_size() * len(shard), shard.shape[1])
whole[: ctx.rows] = grad.T @ x / dist.get_world_size()
grad_shard = torch.empty_like(shard)
dist.reduce_scatter_tensor(grad_shard, whole, op=dist.ReduceOp.AVG)
