# wrong value: steps at the beginning | this rank's own value
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    if tensor.is_floating_point():
        dist.broadcast(tensor.detach(), src=0)
