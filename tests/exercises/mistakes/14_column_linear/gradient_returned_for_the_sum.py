# wrong value: the gradient of the input x | never added up (T01)
# [answer 1]
total = gradient.clone(memory_format=torch.contiguous_format)
dist.all_reduce(total)
return gradient
