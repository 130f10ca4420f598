# hang: rank 2 | whose partner never comes
# [answer 2]
if rank == world_size - 1:
    loss.backward()
    dist.send(x.grad, dst=rank - 1)
