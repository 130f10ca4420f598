# wrong value: the gradient of the own scores
# [answer 3]
own = ctx.first + torch.arange(chances.shape[1])
return chances - (targets[:, None] == own).to(chances.dtype), None, None
