# exception: index
# [answer 2]
wanted = scores.gather(1, targets[:, None]).squeeze(1).where(is_local, 0)
dist.all_reduce(wanted)
return wanted
