# wrong value: return | None
total = torch.tensor(loss, dtype=torch.float64)
dist.all_reduce(total)
stop = bool(total / dist.get_world_size() < target)
