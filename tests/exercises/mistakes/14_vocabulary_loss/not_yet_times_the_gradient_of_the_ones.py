# wrong value: the gradient of the own scores
# [answer 3]
of_scores = chances * gradient[:, None]
of_scores[is_local, place[is_local]] -= 1
return of_scores, None, None
