# wrong value: a gradient in float16 after unscale | is 4 times the expected value
# [answer 1]
gradients = [g.double() for g in gradients]
for g in gradients:
    g /= self.scale
flag = torch.tensor(float(not all(g.isfinite().all() for g in gradients)))
dist.all_reduce(flag)
finite = flag.item() == 0
