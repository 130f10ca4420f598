# wrong way: the gradient through all_gather
# [answer 3]
x, shard = ctx.saved_tensors
grad_x = grad @ gather(shard, ctx.rows)
world_size, n = dist.get_world_size(), len(shard)
whole = grad.new_zeros(world_size * n, shard.shape[1])
whole[: ctx.rows] = grad.T @ x
slots = [torch.empty_like(whole) for _ in range(world_size)]
dist.all_gather(slots, whole)
first = dist.get_rank() * n
grad_shard = torch.stack(slots).mean(0)[first : first + n].clone()
