# exception: attempting to assign a gradient with dtype 'double'
# [answer 2]
gradient = parameter.grad.double()
work = dist.all_reduce(gradient, async_op=True)
self.works.append((work, gradient, parameter))
# [answer 3]
for work, gradient, parameter in self.works:
    work.wait()
    parameter.grad = gradient / dist.get_world_size()
self.works.clear()
