# wrong value: the mean over all ranks
total = values.sum()
dist.all_reduce(total)
return total
