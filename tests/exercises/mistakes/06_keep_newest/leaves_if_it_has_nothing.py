# hang: all_gather | only some ranks reach
# [answer 2]
if not own:
    return None
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own)
return max(set(everyone[0]).intersection(*everyone[1:]), default=None)
