# right: each rank's share of the mean, by the count of all
count = torch.tensor([values.numel()], dtype=values.dtype)
dist.all_reduce(tensor=count, op=dist.ReduceOp.SUM)
share = torch.sum(values / count)
dist.all_reduce(share)
return share
