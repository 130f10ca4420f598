# wrong value: first.grad on stage
# [answer 2]
if x.grad is not None:
    x.grad = None
if rank == world_size - 1:
    loss.backward()
else:
    gradient = torch.empty_like(y)
    dist.recv(gradient, src=rank + 1)
    (y.detach() * gradient).sum()
    y.backward(gradient.clamp(-1, 1))
if rank > 0:
    dist.send(x.grad, dst=rank - 1)
