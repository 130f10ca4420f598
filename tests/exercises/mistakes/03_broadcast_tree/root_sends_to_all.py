# wrong way: rounds
if distance == 1 and place == 0:
    for other in range(world_size):
        if other != root:
            dist.send(tensor, other)
elif distance == 1:
    dist.recv(tensor, root)
