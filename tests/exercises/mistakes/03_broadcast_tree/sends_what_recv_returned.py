# exception: rank 1 raised TypeError | got <class 'int'> | the rank of the sender
if place < distance and place + distance < world_size:
    dist.send(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    tensor = dist.recv(tensor, (rank - distance) % world_size)
