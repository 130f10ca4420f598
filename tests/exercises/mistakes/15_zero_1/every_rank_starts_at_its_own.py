# wrong value: after one step of SGD
# [answer 3]
dist.all_gather_into_tensor(whole, self.shard.detach())
first = dist.get_rank() * self.numel
for parameter in self.parameters:
    values = whole.roll(-first)[: parameter.numel()]
    parameter.copy_(values.view_as(parameter))
    first += parameter.numel()
