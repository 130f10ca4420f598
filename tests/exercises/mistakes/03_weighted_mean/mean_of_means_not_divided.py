# wrong value: times too big | never divided by the world size
mean = values.mean()
dist.all_reduce(mean)
return mean
