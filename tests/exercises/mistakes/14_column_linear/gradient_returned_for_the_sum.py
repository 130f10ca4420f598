# wrong value: the gradient of the input x | never added up
# [answer 1]
total = gradient.clone(memory_format=torch.contiguous_format)
dist.all_reduce(total)
return gradient
