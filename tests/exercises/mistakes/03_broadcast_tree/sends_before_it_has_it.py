# hang: deadlock | waits | change their order on one rank
if place <= distance and place + distance < world_size:
    dist.send(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    dist.recv(tensor, (rank - distance) % world_size)
