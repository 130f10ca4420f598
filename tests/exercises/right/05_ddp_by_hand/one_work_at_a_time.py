# right: a dict of works by parameter, broadcasts by object of no tensors
# [answer 1]
works = []
for tensor in (*module.parameters(), *module.buffers()):
    works.append(dist.broadcast(tensor.data, src=0, async_op=True))
for work in works:
    work.wait()
# [answer 2]
mean = dist.all_reduce(parameter.grad, dist.ReduceOp.AVG, async_op=True)
self.works.append(mean)
# [answer 3]
for _ in range(len(self.works)):
    self.works.pop(0).wait()
