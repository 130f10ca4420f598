# wrong value: the mean
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
dist.all_reduce(totals, async_op=True)
return totals[0] / totals[1]
