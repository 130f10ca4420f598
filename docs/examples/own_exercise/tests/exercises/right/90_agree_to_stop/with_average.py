# right: lets the collective divide
mean = torch.tensor(loss, dtype=torch.float64)
dist.all_reduce(mean, op=dist.ReduceOp.AVG)
return mean.item() < target
