# hang: all_reduce | only some ranks reach
# [answer 2]
column = place.where(mine, 0)
wanted = scores.gather(1, column[:, None]).squeeze(1).where(mine, 0)
if mine[0]:
    dist.all_reduce(wanted)
return wanted
