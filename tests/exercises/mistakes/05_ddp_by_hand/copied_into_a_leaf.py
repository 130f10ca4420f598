# exception: a leaf Variable that requires grad | under `with torch.no_grad():`
# [answer 1]
for tensor in chain(module.parameters(), module.buffers()):
    room = tensor.clone()
    dist.broadcast(room, src=0)
    tensor.copy_(room)
