# wrong value: a gradient after unscale, with inf on rank 0
# [answer 1]
overflow = torch.zeros(1)
for g in gradients:
    g /= self.scale
    if not g.isfinite().all():
        overflow += 1
        break
dist.all_reduce(overflow)
finite = overflow.item() == 0
