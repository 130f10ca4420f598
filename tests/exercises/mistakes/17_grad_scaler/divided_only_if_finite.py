# wrong value: a gradient after unscale, with inf on rank 0
# [answer 1]
bad = torch.tensor(float(not all(g.isfinite().all() for g in gradients)))
dist.all_reduce(bad, op=dist.ReduceOp.MAX)
finite = bad.item() == 0
if finite:
    for g in gradients:
        g /= self.scale
