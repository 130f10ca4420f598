# right: parts of the gradient by all_to_all, rows joined one by one
# [answer 1]
world_size = dist.get_world_size()
slots = list(shard.new_empty(world_size, *shard.shape).unbind())
dist.all_gather(slots, shard.detach().contiguous())
return torch.vstack(slots).narrow(0, 0, rows)
# [answer 2]
ctx.rows = rows
ctx.save_for_backward(x, shard)
return torch.einsum("bc,rc->br", x, gather(shard, rows))
# [answer 3]
x, shard = ctx.saved_tensors
world_size, n = dist.get_world_size(), shard.size(0)
grad_x = torch.mm(grad, gather(shard, ctx.rows))
whole = torch.zeros(world_size * n, shard.size(1), dtype=grad.dtype)
whole[: ctx.rows].addmm_(grad.t(), x)
received = torch.empty_like(whole)
dist.all_to_all_single(received, whole)
grad_shard = received.view(world_size, n, -1).mean(0)
