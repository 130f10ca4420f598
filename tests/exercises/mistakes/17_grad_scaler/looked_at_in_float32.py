# wrong value: whether all are finite, with | in float64 | is false, expected true
# [answer 1]
for gradient in gradients:
    gradient /= self.scale
good = all(gradient.float().isfinite().all() for gradient in gradients)
flag = torch.tensor(float(good))
dist.all_reduce(flag, op=dist.ReduceOp.MIN)
finite = flag.item() == 1
