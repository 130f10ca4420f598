# wrong value: the gradient of weight | times too big: added up
# [answer 2]
total = gradient.clone(memory_format=torch.contiguous_format)
dist.all_reduce(total)
return total
