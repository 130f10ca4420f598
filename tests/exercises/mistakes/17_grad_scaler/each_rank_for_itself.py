# wrong value: whether all are finite, with
# [answer 1]
for gradient in gradients:
    gradient /= self.scale
finite = all(bool(gradient.isfinite().all()) for gradient in gradients)
