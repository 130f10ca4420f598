# exception: destination rank should not be the same | each rank in turn is the root
if place < distance and place + distance < world_size:
    dist.send(tensor, place + distance)
elif distance <= place < 2 * distance:
    dist.recv(tensor, place - distance)
