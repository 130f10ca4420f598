# wrong value: has shape [1], expected []
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
dist.all_reduce(totals)
return totals[:1] / totals[1:]
