# wrong value: stepped in this rank's shard only
# [answer 3]
mine = dist.get_rank() * self.numel
whole = self.flatten([parameter.detach() for parameter in self.parameters])
whole[mine : mine + self.numel] = self.shard.detach()
first = 0
for parameter in self.parameters:
    values = whole[first : first + parameter.numel()]
    parameter.copy_(values.view_as(parameter))
    first += parameter.numel()
