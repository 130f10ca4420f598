# wrong value: a shard after step 1
# [answer 2]
optimizer.step()
self.good_steps = self.good_steps + 1 if finite else 0
if not finite:
    self.scale /= 2
elif self.good_steps == self.interval:
    self.scale, self.good_steps = self.scale * 2, 0
