# wrong value: a shard after step 0 | the optimizer took no step
# [answer 2]
if finite:
    optimizer.step
    self.good_steps += 1
    if self.good_steps == self.interval:
        self.scale *= 2
        self.good_steps = 0
else:
    self.scale /= 2
    self.good_steps = 0
