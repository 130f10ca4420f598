# wrong way: never waited for the Work of broadcast | keep the Work
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    dist.broadcast(tensor.detach(), src=0, async_op=True)
