# wrong value: rank 0: right | only one rank holds the result
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
dist.reduce(totals, dst=0)
return totals[0] / totals[1]
