# wrong value: gather_lengths | tensor
# [answer 1]
lengths = [torch.empty(1, dtype=torch.int64) for _ in range(dist.get_world_size())]
dist.all_gather(lengths, torch.tensor([length]))
return [other[0] for other in lengths]
