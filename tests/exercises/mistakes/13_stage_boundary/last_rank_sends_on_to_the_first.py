# wrong value: on stage
# [answer 2]
if rank == world_size - 1:
    loss.backward()
else:
    gradient = torch.empty_like(y)
    dist.recv(gradient, src=rank + 1)
    gradient.requires_grad_()
    (y.detach() * gradient).sum().backward()
if rank > 0:
    dist.send(torch.zeros_like(x) if x.grad is None else x.grad, dst=rank - 1)
