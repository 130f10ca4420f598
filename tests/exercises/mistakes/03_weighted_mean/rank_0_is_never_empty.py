# exception: IndexError | rank 0
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
if dist.get_rank() == 0:
    print("the first value is", values[0])
dist.all_reduce(totals)
return totals[0] / totals[1]
