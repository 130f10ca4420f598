# wrong value: the length of 13 indices padded for a world of 1
# [answer 2]
missing = world_size - len(indices) % world_size
return indices + (indices * missing)[:missing]
