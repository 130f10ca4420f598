# wrong value: unused.grad was none, and is a tensor after step
# [answer 3]
dist.all_gather_into_tensor(whole, self.shard.detach())
first = 0
for parameter in self.parameters:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    parameter.copy_(whole[first : first + parameter.numel()].view_as(parameter))
    first += parameter.numel()
