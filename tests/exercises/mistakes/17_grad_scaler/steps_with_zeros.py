# wrong value: a shard after step 1
# [answer 2]
if not finite:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            parameter.grad.zero_()
    self.scale, self.good_steps = self.scale / 2, 0
else:
    self.good_steps += 1
optimizer.step()
if self.good_steps == self.interval:
    self.scale, self.good_steps = self.scale * 2, 0
