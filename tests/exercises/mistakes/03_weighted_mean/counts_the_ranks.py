# wrong value: the mean over all
totals = torch.stack([values.sum(), values.new_tensor(1)])
dist.all_reduce(totals)
return totals[0] / totals[1]
