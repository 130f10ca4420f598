# wrong value: grad after step | changed: work on a copy
# [answer 2]
for parameter in self.parameters:
    if parameter.grad is not None:
        parameter.grad /= dist.get_world_size()
whole = self.flatten([torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters])
self.shard.grad = torch.empty_like(self.shard)
dist.reduce_scatter_tensor(self.shard.grad, whole)
