# wrong value: times too big | after backward and finish
# [answer 2]
self.works.append(dist.all_reduce(parameter.grad, async_op=True))
