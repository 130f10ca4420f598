# hang: all_reduce | only some ranks reach
# [answer 2]
column = place.where(is_local, 0)
wanted = scores.gather(1, column[:, None]).squeeze(1).where(is_local, 0)
if is_local[0]:
    dist.all_reduce(wanted)
return wanted
