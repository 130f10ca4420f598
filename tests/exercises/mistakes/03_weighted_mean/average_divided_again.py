# wrong value: 1/ | divided by the world size twice
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
dist.all_reduce(totals, op=dist.ReduceOp.AVG)
return totals[0] / totals[1] / dist.get_world_size()
