# wrong value: agree_on_newest returned None, but all ranks have epoch 10 | rank 0: right | only one rank holds the result
# [answer 2]
everyone = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
dist.gather_object(own, everyone, dst=0)
if dist.get_rank() == 0:
    return max(set(everyone[0]).intersection(*everyone[1:]), default=None)
return None
