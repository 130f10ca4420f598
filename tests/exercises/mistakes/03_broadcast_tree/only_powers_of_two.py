# hang: deadlock | 3 ranks | without a matching call
if place < distance:
    dist.send(tensor, (rank + distance) % world_size)
elif place < 2 * distance:
    dist.recv(tensor, (rank - distance) % world_size)
