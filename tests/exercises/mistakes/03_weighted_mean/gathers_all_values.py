# wrong way: its sum and its count are enough
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, values)
return torch.cat(everyone).mean()
