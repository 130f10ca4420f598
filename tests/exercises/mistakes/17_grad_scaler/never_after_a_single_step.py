# wrong value: the scale after step 0 | got 8, expected 16
# [answer 2]
if not finite:
    self.scale /= 2
    self.good_steps = 0
elif self.good_steps + 1 > self.interval - 1 and self.good_steps:
    optimizer.step()
    self.scale *= 2
    self.good_steps = 0
else:
    optimizer.step()
    self.good_steps += 1
