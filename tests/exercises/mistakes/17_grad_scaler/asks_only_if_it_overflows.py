# hang: all_reduce | only some ranks reach
# [answer 1]
for gradient in gradients:
    gradient /= self.scale
finite = all(bool(gradient.isfinite().all()) for gradient in gradients)
if not finite:
    dist.all_reduce(torch.ones(1), op=dist.ReduceOp.MAX)
