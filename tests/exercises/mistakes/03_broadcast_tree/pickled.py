# wrong way: messages were sent
if place < distance and place + distance < world_size:
    dist.send_object_list([tensor], (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    box = [None]
    dist.recv_object_list(box, (rank - distance) % world_size)
    tensor.copy_(box[0])
