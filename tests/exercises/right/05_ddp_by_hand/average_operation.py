# right: ReduceOp.AVG, in-place under no_grad
# [answer 1]
with torch.no_grad():
    for tensor in [*module.parameters(), *module.buffers()]:
        dist.broadcast(tensor, 0)
# [answer 2]
work = dist.all_reduce(parameter.grad, op=dist.ReduceOp.AVG, async_op=True)
self.works += [work]
# [answer 3]
while self.works:
    self.works.pop().wait()
