# wrong value: the error must name
# [answer 1]
each, rest = divmod(global_batch, world_size)
if not each:
    raise ValueError(f"too few samples: {global_batch}")
return [each + (rank < rest) for rank in range(world_size)]
