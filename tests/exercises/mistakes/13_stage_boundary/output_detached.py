# wrong value: the output has lost its graph | detach only what you send
# [answer 1]
x = inputs
if rank > 0:
    x = torch.empty(shape, dtype=torch.float64)
    dist.recv(x, src=rank - 1)
    x.requires_grad_()
y = stage(x).detach()
if rank < world_size - 1:
    dist.send(y, dst=rank + 1)
