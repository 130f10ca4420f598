# wrong value: the mean of the ranks' values
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    if tensor.is_floating_point():
        dist.all_reduce(tensor.data)
        tensor.data /= dist.get_world_size()
    else:
        dist.broadcast(tensor.data, src=0)
