# exception: NoneType | in place and return
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
totals = dist.all_reduce(totals)
return totals[0] / totals[1]
