# wrong value: .grad | this rank's own gradient
# [answer 1]
for parameter in [*cut, *whole]:
    grad = parameter.grad.clone()
    dist.all_reduce(grad, group=data_group)
    grad /= dist.get_world_size(data_group)
