# wrong value: the scores of the targets
# [answer 2]
column = place.where(is_local, 0)
return scores.gather(1, column[:, None]).squeeze(1).where(is_local, 0)
