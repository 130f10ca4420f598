# wrong value: the gradient of the own scores
# [answer 3]
of_scores = chances.clone()
of_scores[mine, place[mine]] += 1
return of_scores * gradient[:, None], None, None
