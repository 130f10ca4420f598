# wrong value: the gradient of the own scores
# [answer 3]
column = (targets - ctx.first).clamp(0, chances.shape[1] - 1)
of_scores = chances.clone()
of_scores[torch.arange(len(targets)), column] -= 1
return of_scores * gradient[:, None], None, None
