# right: ranks of the group, by isend and irecv
to, source = (rank + distance) % world_size, (rank - distance) % world_size
if place < min(distance, world_size - distance):
    dist.isend(tensor.clone(), group=dist.group.WORLD, group_dst=to).wait()
if place in range(distance, 2 * distance):
    dist.irecv(tensor, group=dist.group.WORLD, group_src=source).wait()
