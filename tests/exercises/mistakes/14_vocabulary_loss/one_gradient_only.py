# wrong value: the backward pass | incorrect number of gradients (expected 3, got 1)
# [answer 3]
of_scores = chances.clone()
of_scores[is_local, place[is_local]] -= 1
return of_scores * gradient[:, None]
