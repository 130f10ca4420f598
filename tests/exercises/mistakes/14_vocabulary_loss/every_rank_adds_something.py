# wrong value: the scores of the targets
# [answer 2]
column = place.clamp(0, scores.shape[1] - 1)
wanted = scores.gather(1, column[:, None]).squeeze(1)
dist.all_reduce(wanted)
return wanted
