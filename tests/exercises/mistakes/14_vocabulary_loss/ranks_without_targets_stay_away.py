# hang: all_reduce | call it more often than others
# [answer 2]
column = place.where(mine, 0)
wanted = scores.gather(1, column[:, None]).squeeze(1).where(mine, 0)
if mine.any():
    dist.all_reduce(wanted)
return wanted
