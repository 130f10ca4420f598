# ranks disagree: first difference | all_reduce | in a different order
total, count = values.sum(), torch.tensor(len(values))
if dist.get_rank() == 0:
    dist.all_reduce(total)
    dist.all_reduce(count)
else:
    dist.all_reduce(count)
    dist.all_reduce(total)
return total / count
