# wrong way: never waited for the Work of i | keep the Work
if place < distance and place + distance < world_size:
    dist.isend(tensor, (rank + distance) % world_size)
elif distance <= place < 2 * distance:
    dist.irecv(tensor, (rank - distance) % world_size)
