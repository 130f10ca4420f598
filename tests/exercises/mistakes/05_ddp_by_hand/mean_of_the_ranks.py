# wrong value: first at the beginning | state of rank 0
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    dist.all_reduce(tensor.detach())
    tensor.detach().div_(dist.get_world_size())
