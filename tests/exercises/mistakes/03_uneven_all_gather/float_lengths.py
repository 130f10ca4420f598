# wrong value: gather_lengths | float
# [answer 1]
lengths = [torch.empty(1) for _ in range(dist.get_world_size())]
dist.all_gather(lengths, torch.tensor([float(length)]))
return [other.item() for other in lengths]
