# wrong value: does not require a gradient
# [answer 1]
x = inputs
if rank > 0:
    x = torch.empty(shape, dtype=torch.float64)
    dist.recv(x, src=rank - 1)
y = stage(x)
if rank < world_size - 1:
    dist.send(y.detach(), dst=rank + 1)
