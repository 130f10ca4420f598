# hang: broadcast | root | pass different roots
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    dist.broadcast(tensor.detach(), src=dist.get_rank())
