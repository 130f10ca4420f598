# ranks disagree: int64 | different dtypes
total = values.sum()
if dist.get_rank() == 0:
    total = total.long()
dist.all_reduce(total)
count = torch.tensor(len(values))
dist.all_reduce(count)
return total.double() / count
