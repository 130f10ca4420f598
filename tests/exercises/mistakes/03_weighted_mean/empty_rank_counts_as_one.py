# wrong value: values | an empty rank counted as one sample
t = torch.tensor([values.sum(), max(1, len(values))], dtype=torch.float64)
dist.all_reduce(t)
return t[0] / t[1]
