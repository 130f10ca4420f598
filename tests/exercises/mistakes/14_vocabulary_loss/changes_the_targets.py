# wrong value: the targets that were given, afterwards
# [answer 2]
targets.sub_(first)
targets[~is_local] = 0
wanted = scores.gather(1, targets[:, None]).squeeze(1).where(is_local, 0)
dist.all_reduce(wanted)
return wanted
