# wrong value: self.scale is a tensor after step, not a float
# [answer 2]
self.scale = torch.tensor(self.scale)
if finite:
    optimizer.step()
    self.good_steps += 1
    if self.good_steps == self.interval:
        self.scale *= 2
        self.good_steps = 0
else:
    self.scale /= 2
    self.good_steps = 0
