# wrong value: the whole gradient of norm.weight
# [answer 2]
found = {}
for name, p in block.named_parameters():
    mine = p.grad.to_local()
    parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, mine.contiguous())
    found[name] = mine if p.dim() == 1 else torch.cat(parts)
return found
