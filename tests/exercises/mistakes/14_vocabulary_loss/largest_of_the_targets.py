# wrong value: the scores of the targets
# [answer 2]
wanted = scores.gather(1, place.where(is_local, 0)[:, None]).squeeze(1).where(is_local, 0)
dist.all_reduce(wanted, op=dist.ReduceOp.MAX)
return wanted
