# wrong value: a share of shares( | expected an int
# [answer 1]
if global_batch < world_size:
    raise ValueError(f"{global_batch} samples for {world_size} ranks")
each, rest = global_batch // world_size, global_batch % world_size
return [each + float(rank < rest) for rank in range(world_size)]
