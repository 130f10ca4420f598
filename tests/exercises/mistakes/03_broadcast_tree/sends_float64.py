# wrong value: the whole numbers of root 3
if place < distance and place + distance < world_size:
    dist.send(tensor.double(), (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    room = torch.empty(tensor.shape, dtype=torch.float64)
    dist.recv(room, (rank - distance) % world_size)
    tensor.copy_(room)
