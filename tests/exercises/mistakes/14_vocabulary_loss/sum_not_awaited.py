# wrong way: never waited for the Work of all_reduce | keep the Work
# [answer 2]
wanted = scores.gather(1, place.where(is_local, 0)[:, None]).squeeze(1).where(is_local, 0)
dist.all_reduce(wanted, async_op=True)
return wanted
