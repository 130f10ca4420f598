# wrong value: the tensor of root 0 | own value
if place < distance and place + distance < world_size:
    dist.send(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    new = torch.empty(tensor.shape, dtype=tensor.dtype)
    dist.recv(new, (rank - distance) % world_size)
    tensor.data = new
