# wrong value: root | nothing was communicated
if 2 * distance > world_size:
    break
if place < distance and place + distance < world_size:
    dist.send(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    dist.recv(tensor, (rank - distance) % world_size)
