# wrong value: the whole gradient of norm.weight | 3 times the expected value
# [answer 2]
found = {}
for name, p in block.named_parameters():
    found[name] = p.grad.full_tensor()
    dist.all_reduce(found[name])
return found
