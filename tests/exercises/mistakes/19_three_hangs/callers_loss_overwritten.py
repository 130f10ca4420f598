# wrong value: the caller's loss
# [answer 1]
dist.all_reduce(loss)
if dist.get_rank() != 0:
    return None
return float(loss / dist.get_world_size())
