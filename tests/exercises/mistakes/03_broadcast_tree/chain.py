# wrong way: 3 rounds
if distance == 1:
    if place > 0:
        dist.recv(tensor, (rank - 1) % world_size)
    if place < world_size - 1:
        dist.send(tensor, (rank + 1) % world_size)
