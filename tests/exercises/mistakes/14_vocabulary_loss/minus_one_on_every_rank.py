# wrong value: also where the target is not local
# [answer 3]
result = chances.clone()
column = place.clamp(0, chances.shape[1] - 1)
result[torch.arange(len(targets)), column] -= 1
return result * gradient[:, None], None, None
