# wrong value: after a second finish() | divided by the world size twice
# [answer 2]
self.works.append(dist.all_reduce(parameter.grad, async_op=True))
# [answer 3]
for w in self.works: w.wait()
self.works.clear()
for p in self.module.parameters():
    if p.grad is not None: p.grad /= dist.get_world_size()
