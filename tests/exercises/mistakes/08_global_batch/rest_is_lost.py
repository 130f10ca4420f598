# wrong value: shares | no sample is lost
# [answer 1]
if global_batch < world_size:
    raise ValueError(f"{global_batch} samples, {world_size} ranks")
return [global_batch // world_size] * world_size
