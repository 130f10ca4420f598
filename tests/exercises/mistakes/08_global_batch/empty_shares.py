# wrong value: shares(3, 4) | fewer samples than ranks
# [answer 1]
each, rest = divmod(global_batch, world_size)
return [each + (rank < rest) for rank in range(world_size)]
