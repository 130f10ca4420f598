# wrong value: .grad | this rank's own gradient
# [answer 1]
with torch.no_grad():
    for parameter in [*cut, *whole]:
        dist.all_reduce(parameter, group=data_group)
        parameter /= dist.get_world_size(data_group)
