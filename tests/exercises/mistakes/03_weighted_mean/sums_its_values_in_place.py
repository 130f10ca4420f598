# wrong value: this rank's values after the call
count = values.new_tensor(len(values))
total = values.sum()
values.mul_(0).add_(1)
totals = torch.stack([total, count])
dist.all_reduce(totals)
return totals[0] / totals[1]
