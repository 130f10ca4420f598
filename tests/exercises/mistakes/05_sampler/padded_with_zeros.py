# wrong value: 13 indices padded for a world of 3
# [answer 2]
missing = -len(indices) % world_size
return indices + [0] * missing
