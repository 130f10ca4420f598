# right: one all_reduce for all, divided before it; whole squares split over the ranks
# [answer 1]
if sequence_parallel:
    for parameter in whole:
        dist.all_reduce(parameter.grad, group=tensor_group)
parameters = [*cut, *whole]
flat = torch.cat([p.grad.flatten() for p in parameters])
flat /= dist.get_world_size(data_group)
dist.all_reduce(flat, group=data_group)
for parameter, grad in zip(parameters, flat.split([p.numel() for p in parameters])):
    parameter.grad.copy_(grad.view_as(parameter))
# [answer 2]
parts = dist.get_world_size(tensor_group)
squares = sum(p.grad.square().sum() for p in cut)
squares += sum(p.grad.square().sum() for p in whole) / parts
dist.all_reduce(squares, group=tensor_group)
return squares**0.5
