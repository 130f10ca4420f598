# right: rank 0 gets the sums, divides, and tells the others
totals = torch.tensor([values.sum(), values.numel()], dtype=torch.float64)
dist.reduce(totals, dst=0)
mean = totals[:1] / totals[1:]
dist.broadcast(mean, src=0)
return mean.squeeze()
