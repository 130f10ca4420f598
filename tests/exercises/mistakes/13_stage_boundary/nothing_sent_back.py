# hang: recv | without a matching call
# [answer 2]
if rank == world_size - 1:
    loss.backward()
else:
    gradient = torch.empty_like(y)
    dist.recv(gradient, src=rank + 1)
    y.backward(gradient)
