# exception: through this very tensor
# [answer 1]
if rank == 0:
    x = inputs
else:
    x = torch.empty(shape, dtype=torch.float64)
    dist.recv(x, rank - 1)
    x.requires_grad_()
y = stage(x)
forward.x = x
if rank < world_size - 1:
    dist.send(y.detach(), rank + 1)
# [answer 2]
if rank == world_size - 1:
    loss.backward()
else:
    gradient = torch.empty_like(y)
    dist.recv(gradient, rank + 1)
    y.backward(gradient)
if rank > 0:
    dist.send(forward.x.grad, rank - 1)
