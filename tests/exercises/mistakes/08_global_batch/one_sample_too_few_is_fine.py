# wrong value: shares(3, 4) | must raise ValueError
# [answer 1]
each, rest = divmod(global_batch, world_size)
if global_batch < world_size - 1:
    raise ValueError(f"{global_batch} samples, {world_size} ranks")
return [each + (rank < rest) for rank in range(world_size)]
