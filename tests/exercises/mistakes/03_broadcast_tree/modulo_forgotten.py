# exception: names rank 4, but the ranks are 0 to 3
if place < distance and place + distance < world_size:
    dist.send(tensor, rank + distance)
elif distance <= place < 2 * distance:
    dist.recv(tensor, rank - distance)
