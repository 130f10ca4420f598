# wrong value: this rank's values after the call | work on a copy
t = torch.tensor([0.0, len(values)], dtype=torch.float64)
for i in range(1, len(values)):
    values[i] += values[i - 1]
if len(values): t[0] = values[-1]
dist.all_reduce(t)
return t[0] / t[1]
