# wrong value: rank 0: right | only one rank holds the result
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
lists = None
if dist.get_rank() == 0:
    lists = [torch.empty_like(totals) for _ in range(dist.get_world_size())]
dist.gather(totals, lists, dst=0)
if lists:
    totals = torch.stack(lists).sum(0)
return totals[0] / totals[1]
