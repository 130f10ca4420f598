# hang: all_gather_into_tensor | rank 0 | only some ranks reach
# [answer 3]
if dist.get_rank() == 0:
    dist.all_gather_into_tensor(whole, self.shard.detach())
first = 0
for parameter in self.parameters:
    values = whole[first : first + parameter.numel()]
    parameter.copy_(values.view_as(parameter))
    first += parameter.numel()
