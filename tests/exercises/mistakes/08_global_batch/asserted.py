# wrong value: must raise ValueError, but raised AssertionError: 3 samples
# [answer 1]
assert global_batch >= world_size, f"{global_batch} samples for {world_size} ranks"
each, rest = divmod(global_batch, world_size)
return [each + (rank < rest) for rank in range(world_size)]
