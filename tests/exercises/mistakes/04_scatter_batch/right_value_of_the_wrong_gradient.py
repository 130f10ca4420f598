# wrong value: the gradient of parts of
# [answer 2]
weights = torch.tensor(sizes, dtype=losses[0].dtype) / sum(sizes)
value = (torch.stack(losses) * weights).sum()
plain = torch.stack(losses).mean()
return plain + (value - plain).detach()
