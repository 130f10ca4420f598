# wrong value: root 1
if rank < distance and rank + distance < world_size:
    dist.send(tensor, rank + distance)
elif distance <= rank < 2 * distance:
    dist.recv(tensor, rank - distance)
