# wrong value: the loss of parts of [3, 3, 3, 1]
# [answer 2]
weights = torch.tensor(sizes) / max(sizes)
return (torch.stack(losses) * weights).sum() / len(sizes)
