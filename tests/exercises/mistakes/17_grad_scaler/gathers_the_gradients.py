# wrong way: numbers to collectives
# [answer 1]
for gradient in gradients:
    gradient /= self.scale
own = torch.cat([gradient.flatten() for gradient in gradients] or [torch.zeros(0)])
everybody = [None] * dist.get_world_size()
dist.all_gather_object(everybody, own)
finite = all(bool(one.isfinite().all()) for one in everybody)
