# wrong value: a gradient after unscale
# [answer 1]
bad = torch.tensor(float(any(not gradient.isfinite().all() for gradient in gradients)))
dist.all_reduce(bad, op=dist.ReduceOp.MAX)
finite = bad.item() == 0
