# wrong value: the epoch that all ranks resume from | expected 10
# [answer 2]
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own)
return max(set(everyone[0]) & set(everyone[1]), default=None)
