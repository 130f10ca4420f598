# wrong value: the mean over all ranks
t = torch.tensor([values.sum(), torch.count_nonzero(values)], dtype=torch.float64)
dist.all_reduce(t)
return t[0] / t[1]
