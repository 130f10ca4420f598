# wrong value: the gradient of the input x | the mean
# [answer 1]
total = gradient.clone(memory_format=torch.contiguous_format)
dist.all_reduce(total, op=dist.ReduceOp.AVG)
return total
