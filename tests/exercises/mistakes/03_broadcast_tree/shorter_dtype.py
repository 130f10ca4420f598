# wrong value: name different dtypes | send(float32[3, 2]
if place < distance and place + distance < world_size:
    dist.send(tensor.float(), (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    dist.recv(tensor, (rank - distance) % world_size)
