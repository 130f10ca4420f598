# wrong value: gather_lengths | returned Tensor, expected list[int]
# [answer 1]
lengths = torch.zeros(dist.get_world_size(), dtype=torch.int64)
lengths[dist.get_rank()] = length
dist.all_reduce(lengths)
return lengths
