# wrong value: the mean over all samples
pair = torch.zeros(2, dtype=torch.float64)
if len(values):
    pair[0], pair[1] = values.mean(), 1
dist.all_reduce(pair)
return pair[0] / pair[1]
