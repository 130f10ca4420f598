# wrong value: the largest scores
# [answer 1]
return torch.zeros(len(scores), dtype=scores.dtype)
