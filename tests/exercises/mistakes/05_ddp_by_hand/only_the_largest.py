# wrong value: first.grad of the first step
# [answer 2]
parameter.grad /= dist.get_world_size()
self.works.append(
    dist.all_reduce(parameter.grad, dist.ReduceOp.MAX, async_op=True)
)
