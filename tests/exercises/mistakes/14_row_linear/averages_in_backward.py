# wrong way: backward called all_reduce
# [answer 2]
mean = gradient.clone(memory_format=torch.contiguous_format)
dist.all_reduce(mean, op=dist.ReduceOp.AVG)
return mean
