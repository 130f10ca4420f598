# wrong value: is no leaf
# [answer 1]
x = inputs
if rank > 0:
    received = torch.empty(shape, dtype=torch.float64)
    dist.recv(received, src=rank - 1)
    x = received.requires_grad_().clone()
y = stage(x)
if rank < world_size - 1:
    dist.send(y.detach(), dst=rank + 1)
