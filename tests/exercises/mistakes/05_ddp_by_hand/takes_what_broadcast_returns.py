# exception: has to be a tensor, but got NoneType | return None
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    tensor.data = dist.broadcast(tensor.data, 0)
