# wrong value: the epoch that all ranks resume from | is 13, expected 10
# [answer 2]
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own)
return max(set().union(*everyone), default=None)
