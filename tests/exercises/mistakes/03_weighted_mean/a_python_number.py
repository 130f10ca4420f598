# wrong value: mean_over_ranks | returned float, expected Tensor
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
dist.all_reduce(totals)
return (totals[0] / totals[1]).item()
