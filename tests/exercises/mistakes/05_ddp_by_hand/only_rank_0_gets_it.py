# wrong value: first.grad of the first step | only one rank holds the result
# [answer 2]
parameter.grad /= dist.get_world_size()
self.works.append(dist.reduce(parameter.grad, dst=0, async_op=True))
