# right: weights in float32, as torch.tensor makes them
# [answer 2]
weights = torch.tensor(sizes) / sum(sizes)
return (torch.stack(losses) * weights).sum()
