# wrong value: .grad after whole_gradients is another one
# [answer 2]
found = {}
for name, p in block.named_parameters():
    p.grad = p.grad.redistribute(placements=[Replicate()])
    found[name] = p.grad.to_local()
return found
