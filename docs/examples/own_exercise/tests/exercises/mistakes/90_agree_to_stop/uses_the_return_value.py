# exception: TypeError | in place
total = dist.all_reduce(torch.tensor(loss, dtype=torch.float64))
return bool(total / dist.get_world_size() < target)
