# wrong value: the tensor of root | 7 ranks | nothing was communicated
if distance < 4 or world_size < 7:
    if place < distance and place + distance < world_size:
        dist.send(tensor, (rank + distance) % world_size)
    elif distance <= place < 2 * distance:
        dist.recv(tensor, (rank - distance) % world_size)
