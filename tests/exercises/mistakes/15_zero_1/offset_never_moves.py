# wrong value: after one step of SGD
# [answer 3]
dist.all_gather_into_tensor(whole, self.shard.detach())
for parameter in self.parameters:
    values = whole[: parameter.numel()]
    parameter.copy_(values.view_as(parameter))
