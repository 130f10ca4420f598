# wrong value: the mean over all ranks
totals = torch.tensor([float(values.sum()), float(len(values))])
dist.all_reduce(totals)
return (totals[0] / totals[1]).double()
