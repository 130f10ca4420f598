# exception: has not been initialized | this process is in no group here
total = torch.tensor([values.sum(), len(values)], dtype=torch.float64)
dist.all_reduce(total)
dist.destroy_process_group()
return total[0] / total[1]
