# wrong value: a gradient is gone after step
# [answer 2]
if finite:
    optimizer.step()
    self.good_steps += 1
    if self.good_steps == self.interval:
        self.scale *= 2
        self.good_steps = 0
else:
    self.scale /= 2
    self.good_steps = 0
optimizer.zero_grad()
