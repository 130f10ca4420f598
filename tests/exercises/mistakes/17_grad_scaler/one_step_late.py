# wrong value: the scale after step 2
# [answer 2]
if not finite:
    self.scale, self.good_steps = self.scale / 2, 0
    return
optimizer.step()
if self.good_steps == self.interval:
    self.scale, self.good_steps = self.scale * 2, 0
self.good_steps += 1
