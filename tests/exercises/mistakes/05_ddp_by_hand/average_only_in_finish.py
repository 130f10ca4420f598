# wrong way: 0 collectives had started when backward ended
# [answer 2]
pass
# [answer 3]
for parameter in self.module.parameters():
    if parameter.grad is not None:
        dist.all_reduce(parameter.grad)
        parameter.grad /= dist.get_world_size()
