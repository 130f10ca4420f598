# wrong value: the gradient of this rank's rows, with unequal parts of the batch
# [answer 3]
x, shard = ctx.saved_tensors
grad_x = grad @ gather(shard, ctx.rows)
images = torch.tensor(float(len(x)), dtype=x.dtype)
dist.all_reduce(images)
whole = grad.new_zeros(dist.get_world_size() * len(shard), shard.shape[1])
whole[: ctx.rows] = grad.T @ x * len(x) / images
grad_shard = torch.empty_like(shard)
dist.reduce_scatter_tensor(grad_shard, whole)
