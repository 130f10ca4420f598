# wrong way: never waited for the Work of all_gather | keep the Work
# [answer 3]
dist.all_gather_into_tensor(whole, self.shard.detach(), async_op=True)
first = 0
for parameter in self.parameters:
    values = whole[first : first + parameter.numel()]
    parameter.copy_(values.view_as(parameter))
    first += parameter.numel()
