# right: the round's messages as a list of pairs, of which each rank finds its own
pairs = [
    ((root + a) % world_size, (root + a + distance) % world_size)
    for a in range(distance)
    if a + distance < world_size
]
for source, target in pairs:
    if rank == source:
        dist.send(tensor, dst=target)
    elif rank == target:
        dist.recv(tensor, src=source)
