# wrong value: first at the beginning | rank 0's state
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    dist.all_reduce(tensor.detach())
    if tensor.is_floating_point():
        tensor.detach().div_(dist.get_world_size())
