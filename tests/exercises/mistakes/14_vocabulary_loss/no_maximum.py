# wrong value: the largest scores | was the result ever written
# [answer 1]
return torch.zeros(len(scores), dtype=scores.dtype)
