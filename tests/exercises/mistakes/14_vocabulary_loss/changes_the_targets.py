# wrong value: the targets that were given, afterwards
# [answer 2]
targets.sub_(first)
targets[~mine] = 0
wanted = scores.gather(1, targets[:, None]).squeeze(1).where(mine, 0)
dist.all_reduce(wanted)
return wanted
