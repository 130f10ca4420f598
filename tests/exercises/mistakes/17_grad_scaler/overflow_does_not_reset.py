# wrong value: the scale after step
# [answer 2]
if not finite:
    self.scale /= 2
    return
optimizer.step()
self.good_steps += 1
if self.good_steps == self.interval:
    self.scale, self.good_steps = self.scale * 2, 0
