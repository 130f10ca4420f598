# wrong way: one all_reduce
# [answer 1]
slots = [torch.empty(gradient.shape, dtype=gradient.dtype) for _ in range(dist.get_world_size())]
dist.all_gather(slots, gradient.contiguous())
return torch.stack(slots).sum(0)
