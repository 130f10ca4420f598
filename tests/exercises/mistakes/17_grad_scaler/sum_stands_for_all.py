# wrong value: whether all are finite, with | in float | is false, expected true
# [answer 1]
total = torch.zeros(())
for gradient in gradients:
    gradient /= self.scale
    total += gradient.sum()
dist.all_reduce(total)
finite = bool(total.isfinite())
