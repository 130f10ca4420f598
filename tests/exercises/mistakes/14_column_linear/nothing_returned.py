# wrong value: x got no gradient
# [answer 1]
total = gradient.clone(memory_format=torch.contiguous_format)
dist.all_reduce(total)
