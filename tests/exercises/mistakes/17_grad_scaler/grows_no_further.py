# wrong value: the scale, which was 65536, after a good step
# [answer 2]
if finite:
    optimizer.step()
    self.good_steps += 1
    if self.good_steps == self.interval:
        self.scale, self.good_steps = min(2 * self.scale, 65536.0), 0
else:
    self.scale, self.good_steps = self.scale / 2, 0
