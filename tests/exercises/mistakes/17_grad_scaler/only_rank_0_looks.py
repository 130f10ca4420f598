# wrong value: whether all are finite, with inf on rank 1
# [answer 1]
for gradient in gradients:
    gradient /= self.scale
bad = torch.tensor(float(any(not gradient.isfinite().all() for gradient in gradients)))
dist.broadcast(bad, src=0)
finite = bad.item() == 0
