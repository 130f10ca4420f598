# hang: deadlock | rank | is each partner right
if place < distance:
    dist.send(tensor, (rank + distance) % world_size)
else:
    dist.recv(tensor, (rank - distance) % world_size)
