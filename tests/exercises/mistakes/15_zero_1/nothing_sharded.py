# wrong value: self.shard has shape | saves memory only
# [answer 1]
self.shard = nn.Parameter(whole.clone())
# [answer 2]
dist.all_reduce(whole)
self.shard.grad = whole / dist.get_world_size()
# [answer 3]
first = 0
for parameter in self.parameters:
    values = self.shard.detach()[first : first + parameter.numel()]
    parameter.copy_(values.view_as(parameter))
    first += parameter.numel()
