# wrong way: never waited for the Work of all_reduce | wait()
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
dist.all_reduce(totals, async_op=True)
return totals[0] / totals[1]
