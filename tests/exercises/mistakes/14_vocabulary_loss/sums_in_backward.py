# wrong value: the gradient of the own scores
# [answer 3]
of_scores = chances.clone()
of_scores[is_local, place[is_local]] -= 1
total = gradient.clone()
dist.all_reduce(total)
return of_scores * total[:, None], None, None
