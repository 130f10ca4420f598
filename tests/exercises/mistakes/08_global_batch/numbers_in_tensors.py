# wrong value: shares | returned list of Tensor
# [answer 1]
if global_batch < world_size:
    raise ValueError(f"{global_batch} samples, {world_size} ranks")
parts = torch.full((world_size,), global_batch // world_size)
parts[: global_batch % world_size] += 1
return list(parts)
