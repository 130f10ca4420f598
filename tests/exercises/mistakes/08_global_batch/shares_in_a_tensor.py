# wrong value: shares | tensor
# [answer 1]
if global_batch < world_size:
    raise ValueError(f"{global_batch} samples, {world_size} ranks")
parts = torch.arange(global_batch).tensor_split(world_size)
return torch.tensor([len(part) for part in parts])
