# wrong value: 13 indices padded for a world of 3
# [answer 2]
missing = -len(indices) % world_size
return indices + (indices[1:] + indices[:1]) * missing if not missing else (
    indices + ((indices[1:] + indices[:1]) * missing)[:missing]
)
