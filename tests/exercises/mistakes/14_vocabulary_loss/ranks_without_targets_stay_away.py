# hang: all_reduce | call it more often than others
# [answer 2]
column = place.where(is_local, 0)
wanted = scores.gather(1, column[:, None]).squeeze(1).where(is_local, 0)
if is_local.any():
    dist.all_reduce(wanted)
return wanted
