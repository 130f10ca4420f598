# wrong value: the gradient of weight | times too big: summed over ranks
# [answer 2]
total = gradient.clone(memory_format=torch.contiguous_format)
dist.all_reduce(total)
return total
