# right: only one rank sends to this one, so it takes what comes
if place < distance:
    if place + distance < world_size:
        dist.send(tensor, dst=(rank + distance) % world_size)
elif place < 2 * distance:
    dist.recv(tensor)
