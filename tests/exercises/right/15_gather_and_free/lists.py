# right: lists of tensors in the collectives; the shard is kept beside saved tensors
# [answer 1]
parts = [torch.empty_like(shard) for _ in range(dist.get_world_size())]
dist.all_gather(parts, shard.contiguous())
return torch.cat(parts)[:rows]
# [answer 2]
ctx.save_for_backward(x)
ctx.shard, ctx.rows = shard, rows
weight = gather(shard, rows)
return torch.nn.functional.linear(x, weight)
# [answer 3]
(x,) = ctx.saved_tensors
shard, world_size = ctx.shard, dist.get_world_size()
grad_x = grad @ gather(shard, ctx.rows)
padding = world_size * len(shard) - ctx.rows
whole = torch.nn.functional.pad(grad.T @ x, (0, 0, 0, padding))
grad_shard = torch.empty_like(shard)
dist.reduce_scatter(grad_shard, list((whole / world_size).chunk(world_size)))
