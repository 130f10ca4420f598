# wrong value: after one step of SGD | whose grad is None
# [answer 3]
dist.all_gather_into_tensor(whole, self.shard.detach())
first = 0
for parameter in self.parameters:
    if parameter.grad is not None:
        values = whole[first : first + parameter.numel()]
        parameter.copy_(values.view_as(parameter))
    first += parameter.numel()
