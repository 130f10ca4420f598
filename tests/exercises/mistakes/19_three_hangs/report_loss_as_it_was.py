# hang: all_reduce | rank 0 | only some ranks reach
# [answer 1]
if dist.get_rank() != 0:
    return None
mean = loss.clone()
dist.all_reduce(mean)
return float(mean / dist.get_world_size())
