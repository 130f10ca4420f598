# wrong value: the gradient of the own scores
# [answer 3]
column = targets - ctx.first
here = column < chances.shape[1]
of_scores = chances.clone()
of_scores[here.nonzero().squeeze(1), column[here].clamp(min=-chances.shape[1])] -= 1
return of_scores * gradient[:, None], None, None
