# wrong value: the scale, which was 1.0, after an overflow
# [answer 2]
if finite:
    optimizer.step()
    self.good_steps += 1
    if self.good_steps == self.interval:
        self.scale *= 2
        self.good_steps = 0
else:
    self.scale //= 2
    self.good_steps = 0
