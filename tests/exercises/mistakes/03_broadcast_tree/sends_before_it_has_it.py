# hang: deadlock | waits
if place <= distance and place + distance < world_size:
    dist.send(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    dist.recv(tensor, (rank - distance) % world_size)
