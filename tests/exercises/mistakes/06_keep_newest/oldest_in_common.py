# wrong value: the epoch that all ranks resume from | is 1, expected 10
# [answer 2]
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own)
common = sorted(set(everyone[0]).intersection(*everyone[1:]))
return common[0] if common else None
