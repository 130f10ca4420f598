# wrong value: the tensor of root 0
if place < distance and place + distance < world_size:
    dist.recv(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    dist.send(tensor, (rank - distance) % world_size)
