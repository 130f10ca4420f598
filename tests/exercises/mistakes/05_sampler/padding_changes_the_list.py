# wrong value: the caller's list after pad
# [answer 2]
missing = -len(indices) % world_size
indices += (indices * missing)[:missing]
return indices
