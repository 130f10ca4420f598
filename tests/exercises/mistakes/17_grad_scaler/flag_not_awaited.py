# wrong way: never waited for the Work of all_reduce | keep the Work
# [answer 1]
for gradient in gradients:
    gradient /= self.scale
bad = torch.tensor(float(any(not gradient.isfinite().all() for gradient in gradients)))
dist.all_reduce(bad, op=dist.ReduceOp.MAX, async_op=True)
finite = bad.item() == 0
