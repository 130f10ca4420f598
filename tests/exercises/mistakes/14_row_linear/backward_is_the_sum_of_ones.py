# wrong value: the gradient of weight
# [answer 2]
return torch.ones_like(gradient)
