# right: AVG and awaited sums; the norm of the norms
# [answer 1]
works = [
    dist.all_reduce(p.grad, op=dist.ReduceOp.AVG, group=data_group, async_op=True)
    for p in (*cut, *whole)
]
for work in works:
    work.wait()
for p in whole if sequence_parallel else ():
    total = p.grad.clone()
    dist.all_reduce(total, group=tensor_group)
    p.grad = total
# [answer 2]
with torch.no_grad():
    mine = torch.stack([torch.linalg.vector_norm(p.grad) for p in cut]).norm() ** 2
    slots = [torch.zeros_like(mine) for _ in range(dist.get_world_size(tensor_group))]
    dist.all_gather(slots, mine, group=tensor_group)
    rest = [p.grad.pow(2).sum() for p in whole]
    return torch.stack([*slots, *rest]).sum().sqrt()
