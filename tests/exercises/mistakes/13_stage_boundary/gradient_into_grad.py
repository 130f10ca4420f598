# exception: grad can be implicitly created only for scalar outputs
# [answer 2]
if rank == world_size - 1:
    loss.backward()
else:
    y.grad = torch.empty_like(y)
    dist.recv(y.grad, src=rank + 1)
    y.backward()
if rank > 0:
    dist.send(x.grad, dst=rank - 1)
