# right: lists of tensors in the collectives, and split for the way back
# [answer 1]
shards = whole.chunk(dist.get_world_size())
self.shard = nn.Parameter(shards[dist.get_rank()].clone())
# [answer 2]
self.shard.grad = torch.zeros_like(self.shard)
pieces = list((whole / dist.get_world_size()).split(self.numel))
dist.reduce_scatter(self.shard.grad, pieces)
# [answer 3]
pieces = [torch.empty_like(self.shard.data) for _ in range(dist.get_world_size())]
dist.all_gather(pieces, self.shard.data)
sizes = [parameter.numel() for parameter in self.parameters]
whole = torch.cat(pieces)[: sum(sizes)]
for parameter, values in zip(self.parameters, whole.split(sizes), strict=True):
    parameter.data = values.view_as(parameter).clone()
