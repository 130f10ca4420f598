# wrong value: the gradient of the input | belongs to this rank's loss alone
# [answer 3]
x, shard = ctx.saved_tensors
n = dist.get_world_size()
grad_x = grad @ gather(shard, ctx.rows) / n
whole = torch.nn.functional.pad(grad.T @ x, (0, 0, 0, n * len(shard) - ctx.rows))
grad_shard = torch.empty_like(shard)
dist.reduce_scatter_tensor(grad_shard, whole)
grad_shard /= n
