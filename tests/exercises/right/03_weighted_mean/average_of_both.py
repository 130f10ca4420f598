# right: the averages of sum and count have the same quotient
totals = torch.stack([values.sum(), values.new_tensor(len(values))])
work = dist.all_reduce(totals, op=dist.ReduceOp.AVG, async_op=True)
work.wait()
return totals[0] / totals[1]
