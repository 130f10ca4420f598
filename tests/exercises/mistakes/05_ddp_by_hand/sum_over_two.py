# wrong value: first.grad of the first step
# [answer 2]
parameter.grad /= 2
self.works.append(dist.all_reduce(parameter.grad, async_op=True))
