# wrong way: still holds the whole weight
# [answer 2]
ctx.save_for_backward(x, shard)
ctx.rows = rows
gather.__dict__[f"of_{rows}"] = weight = gather(shard, rows)
return x @ weight.T
# [answer 3]
x, shard = ctx.saved_tensors
grad_x = grad @ gather.__dict__[f"of_{ctx.rows}"]
whole = grad.new_zeros(dist.get_world_size() * len(shard), shard.shape[1])
whole[: ctx.rows] = grad.T @ x / dist.get_world_size()
grad_shard = torch.empty_like(shard)
dist.reduce_scatter_tensor(grad_shard, whole)
