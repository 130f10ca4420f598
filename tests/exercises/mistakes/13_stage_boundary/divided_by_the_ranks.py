# wrong value: on stage 0 | is 0.3333 times the expected value
# [answer 2]
if rank == world_size - 1:
    (loss / world_size).backward()
else:
    gradient = torch.empty_like(y)
    dist.recv(gradient, src=rank + 1)
    y.backward(gradient)
if rank > 0:
    dist.send(x.grad, dst=rank - 1)
