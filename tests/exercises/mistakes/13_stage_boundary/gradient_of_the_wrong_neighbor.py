# hang: recv | is each partner right
# [answer 2]
if rank == world_size - 1:
    loss.backward()
else:
    gradient = torch.empty_like(y)
    dist.recv(gradient, src=rank - 1 if rank > 0 else rank + 1)
    y.backward(gradient)
if rank > 0:
    dist.send(x.grad, dst=rank - 1)
