# wrong value: the scores of the targets
# [answer 2]
first = dist.get_rank() * scores.shape[1]
place = targets - first
is_local = (place >= 0) & (place < scores.shape[1])
wanted = scores.gather(1, place.where(is_local, 0)[:, None]).squeeze(1).where(is_local, 0)
dist.all_reduce(wanted)
return wanted
