# wrong way: changed the tensor of all_reduce | before waiting | before you use or change the tensor
# [answer 2]
self.works.append(dist.all_reduce(parameter.grad, async_op=True))
parameter.grad /= dist.get_world_size()
