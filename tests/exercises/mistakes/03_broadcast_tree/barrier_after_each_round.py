# wrong way: barrier makes all ranks wait for each other | the one rank that matters
if place < distance:
    if place + distance < world_size:
        dist.send(tensor, (rank + distance) % world_size)
elif place < 2 * distance:
    dist.recv(tensor, (rank - distance) % world_size)
dist.barrier()
