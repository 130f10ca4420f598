# hang: deadlock | all_reduce | only some ranks reach
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
if dist.get_rank() == 0:
    dist.all_reduce(totals)
return totals[0] / totals[1]
