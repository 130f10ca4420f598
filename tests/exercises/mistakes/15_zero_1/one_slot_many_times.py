# wrong value: after one step of SGD | [t] * world_size
# [answer 3]
pieces = [torch.empty_like(self.shard)] * dist.get_world_size()
dist.all_gather(pieces, self.shard.detach())
whole = torch.cat(pieces)
first = 0
for parameter in self.parameters:
    values = whole[first : first + parameter.numel()]
    parameter.copy_(values.view_as(parameter))
    first += parameter.numel()
