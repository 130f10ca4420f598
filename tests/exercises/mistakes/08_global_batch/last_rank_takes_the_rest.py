# wrong value: shares | the larger shares are first
# [answer 1]
each, rest = divmod(global_batch, world_size)
if each == 0:
    raise ValueError(f"{global_batch} samples, {world_size} ranks")
return [each] * (world_size - 1) + [each + rest]
