# wrong value: the length of | padded for a world of 7
# [answer 2]
missing = -len(indices) % world_size
return indices + indices[:missing]
