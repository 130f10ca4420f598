# right: blocking calls, one edge after the other; rank 0 breaks the circle
if rank == 0:
    dist.recv(from_left, left)
    dist.send(strip[-1], right)
    dist.recv(from_right, right)
    dist.send(strip[0], left)
else:
    dist.send(strip[-1], right)
    dist.recv(from_left, left)
    dist.send(strip[0], left)
    dist.recv(from_right, right)
