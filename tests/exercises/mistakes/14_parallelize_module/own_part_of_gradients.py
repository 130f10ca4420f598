# wrong value: the whole gradient of norm.weight | own, from its slice
# [answer 2]
return {name: p.grad.to_local() for name, p in block.named_parameters()}
