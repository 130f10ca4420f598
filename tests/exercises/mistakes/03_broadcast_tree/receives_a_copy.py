# wrong value: own value
if place < distance and place + distance < world_size:
    dist.send(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    received = tensor.clone()
    dist.recv(received, (rank - distance) % world_size)
    tensor = received
