# wrong value: is a tuple, expected a list
# [answer 2]
missing = -len(indices) % world_size
return tuple(indices + (indices * (missing + 1))[:missing])
