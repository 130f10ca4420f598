# objects, gathered: the text asks for no particular collective
# [answer 3]
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, self.shard.detach())
whole = torch.cat(everyone)
for parameter in self.parameters:
    here, whole = whole[: parameter.numel()], whole[parameter.numel() :]
    parameter.copy_(here.view_as(parameter))
