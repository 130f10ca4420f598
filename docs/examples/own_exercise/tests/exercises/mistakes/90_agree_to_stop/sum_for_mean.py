# wrong value: should_stop above the mean | is False, expected True
total = torch.tensor(loss, dtype=torch.float64)
dist.all_reduce(total)
return bool(total < target)
