# exception: x.grad | gradients add up over micro-batches | until backward() has run
# [answer 1]
x = inputs
if rank > 0:
    x = torch.empty(shape, dtype=torch.float64)
    dist.recv(x, src=rank - 1)
    x.requires_grad_()
y = stage(x)
if rank < world_size - 1:
    dist.send(y.detach(), dst=rank + 1)
forward.__dict__.setdefault("stack", []).append((x, y))
# [answer 2]
x, y = forward.stack.pop()
if rank == world_size - 1:
    loss.backward()
else:
    gradient = torch.empty_like(y)
    dist.recv(gradient, src=rank + 1)
    y.backward(gradient)
if rank > 0:
    dist.send(x.grad, dst=rank - 1)
