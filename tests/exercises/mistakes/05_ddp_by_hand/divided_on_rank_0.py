# wrong value: first.grad of the first step
# [answer 2]
if dist.get_rank() == 0:
    parameter.grad /= dist.get_world_size()
self.works.append(dist.all_reduce(parameter.grad, async_op=True))
