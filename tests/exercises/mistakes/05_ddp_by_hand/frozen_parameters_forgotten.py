# wrong value: scale | this rank's own value | nothing was communicated
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    if tensor.requires_grad or not isinstance(tensor, nn.Parameter):
        dist.broadcast(tensor.detach(), src=0)
