# wrong value: shares( | another order
# [answer 1]
each, rest = divmod(global_batch, world_size)
if not each:
    raise ValueError(f"{global_batch} samples, {world_size} ranks")
return [each + (rank >= world_size - rest) for rank in range(world_size)]
