# right: the sum and the count travel separately
total, count = values.sum(), torch.tensor(len(values))
dist.all_reduce(total)
dist.all_reduce(count)
return total / count
