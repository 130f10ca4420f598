# wrong value: whether all are finite, with | in float | is false, expected true
# [answer 1]
for gradient in gradients:
    gradient /= self.scale
norm = sum((gradient.double().norm() for gradient in gradients), torch.zeros(()))
dist.all_reduce(norm)
finite = bool(norm.isfinite())
