# wrong value: the tensor of root 1 | what rank 0 began with
if rank < distance and rank + distance < world_size:
    dist.send(tensor, rank + distance)
elif distance <= rank < 2 * distance:
    dist.recv(tensor, rank - distance)
