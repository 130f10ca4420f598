# wrong value: steps at the beginning | rank 1: is this rank's own value | still the rank's own
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    if tensor.is_floating_point():
        dist.broadcast(tensor.detach(), src=0)
