# wrong value: the gradient of the own scores
# [answer 3]
of_scores = chances.clone()
of_scores[is_local, place[is_local]] += 1
return of_scores * gradient[:, None], None, None
