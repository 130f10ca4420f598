# wrong value: the length of 13 indices padded for a world of 3
# [answer 2]
return indices[: len(indices) // world_size * world_size]
