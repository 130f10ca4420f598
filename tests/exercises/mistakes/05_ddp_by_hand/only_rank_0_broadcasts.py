# hang: rank 0 | only some ranks reach
# [answer 1]
if dist.get_rank() == 0:
    for tensor in chain(module.parameters(), module.buffers()):
        dist.broadcast(tensor.detach(), src=0)
