# exception: rank 0 | recv names rank -1
# [answer 1]
x = torch.empty(shape, dtype=torch.float64)
dist.recv(x, src=rank - 1)
x.requires_grad_()
y = stage(x)
if rank < world_size - 1:
    dist.send(y.detach(), dst=rank + 1)
