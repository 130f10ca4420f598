# wrong value: a gradient after unscale
# [answer 1]
gradients = [gradient / self.scale for gradient in gradients]
bad = torch.tensor(float(any(not gradient.isfinite().all() for gradient in gradients)))
dist.all_reduce(bad, op=dist.ReduceOp.MAX)
finite = bad.item() == 0
