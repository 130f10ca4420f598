# wrong value: the mean of the parts' means
# [answer 2]
return torch.stack(losses).mean()
