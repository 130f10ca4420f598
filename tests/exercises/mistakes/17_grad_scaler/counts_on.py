# wrong value: good_steps after 9 steps | is 9, expected 0
# [answer 2]
if finite:
    optimizer.step()
    self.good_steps += 1
    if self.good_steps % self.interval == 0:
        self.scale *= 2
else:
    self.scale /= 2
    self.good_steps = 0
