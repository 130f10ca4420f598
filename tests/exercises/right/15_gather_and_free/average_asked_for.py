# right, torch>=2.9: the mean by AVG, everything awaited
# [answer 1]
n, columns = shard.shape
whole = torch.zeros(n * dist.get_world_size(), columns, dtype=shard.dtype)
dist.all_gather_into_tensor(whole, shard.contiguous(), async_op=True).wait()
return whole[:rows].clone()
# [answer 2]
weight = gather(shard, rows)
y = x.mm(weight.t())
del weight
ctx.rows = rows
ctx.save_for_backward(x, shard)
return y
# [answer 3]
x, shard = ctx.saved_tensors
weight = gather(shard, ctx.rows)
grad_x = grad.mm(weight)
grad_weight = grad.t().mm(x)
missing = dist.get_world_size() * shard.shape[0] - ctx.rows
padded = torch.cat([grad_weight, grad_weight.new_zeros(missing, shard.shape[1])])
grad_shard = torch.zeros_like(shard)
work = dist.reduce_scatter_tensor(
    grad_shard, padded, op=dist.ReduceOp.AVG, async_op=True
)
work.wait()
