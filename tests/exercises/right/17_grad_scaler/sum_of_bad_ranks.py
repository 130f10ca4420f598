# right: how many ranks overflow, summed; the step at the end
# [answer 1]
with torch.no_grad():
    torch._foreach_div_(gradients, self.scale) if gradients else None
bad = torch.zeros(1, dtype=torch.int64)
for gradient in gradients:
    bad += bool(torch.isinf(gradient).any() | torch.isnan(gradient).any())
dist.all_reduce(bad)
finite = bool(bad == 0)
# [answer 2]
self.good_steps = self.good_steps + 1 if finite else 0
if finite:
    optimizer.step()
if not finite:
    self.scale *= 0.5
elif self.good_steps % self.interval == 0:
    self.scale *= 2.0
    self.good_steps = 0
