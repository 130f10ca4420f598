# right: two plain numbers of each rank, pickled
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, (values.sum().item(), len(values)))
total = sum(s for s, _ in everyone) / sum(n for _, n in everyone)
return torch.tensor(total, dtype=torch.float64)
