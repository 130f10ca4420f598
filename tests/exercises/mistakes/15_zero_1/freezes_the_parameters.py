# wrong value: requires_grad of first is another one after step
# [answer 3]
dist.all_gather_into_tensor(whole, self.shard.detach())
first = 0
for parameter in self.parameters:
    n = parameter.numel()
    parameter.requires_grad_(False)
    parameter.copy_(whole[first : first + n].view_as(parameter))
    first += n
