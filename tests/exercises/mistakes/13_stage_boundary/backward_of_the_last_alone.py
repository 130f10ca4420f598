# hang: rank 2 | without a matching call
# [answer 2]
if rank == world_size - 1:
    loss.backward()
    dist.send(x.grad, dst=rank - 1)
