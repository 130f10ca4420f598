# wrong value: gather_lengths | [t] * world_size
# [answer 1]
lengths = [torch.empty(1, dtype=torch.int64)] * dist.get_world_size()
dist.all_gather(lengths, torch.tensor([length]))
return [int(other) for other in lengths]
