# wrong value: bias.grad of the first step | own value
# [answer 2]
if parameter.dim() > 1:
    parameter.grad /= dist.get_world_size()
    self.works.append(dist.all_reduce(parameter.grad, async_op=True))
