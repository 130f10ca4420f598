# wrong value: a gradient after unscale | 1024 times the expected value
# [answer 1]
gradients[:] = [g / self.scale for g in gradients]
bad = torch.tensor(float(not all(g.isfinite().all() for g in gradients)))
dist.all_reduce(bad, op=dist.ReduceOp.MAX)
finite = bad.item() == 0
