# wrong value: the gradient of the own scores
# [answer 3]
own = ctx.first + torch.arange(chances.shape[1])
total = gradient.clone()
dist.all_reduce(total)
of_scores = (chances - (targets[:, None] == own).to(chances.dtype)) * total[:, None]
return of_scores, None, None
