# right: blocking calls, one rank after the other in each direction
if rank:
    dist.recv(from_left, left)
dist.send(strip[-1], right)
if not rank:
    dist.recv(from_left, left)
    dist.send(strip[0], left)
dist.recv(from_right, right)
if rank:
    dist.send(strip[0], left)
