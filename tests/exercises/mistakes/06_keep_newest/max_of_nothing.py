# exception: ValueError | empty
# [answer 2]
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own)
return max(set(everyone[0]).intersection(*everyone[1:]))
