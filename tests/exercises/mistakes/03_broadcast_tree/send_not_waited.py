# wrong way: never waited for the Work of isend | wait()
if place < distance and place + distance < world_size:
    dist.isend(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    dist.recv(tensor, (rank - distance) % world_size)
