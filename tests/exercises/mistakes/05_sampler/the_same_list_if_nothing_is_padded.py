# wrong value: pad returned the list that it was given
# [answer 2]
missing = -len(indices) % world_size
if not missing: return indices
return indices + (indices * (missing + 1))[:missing]
