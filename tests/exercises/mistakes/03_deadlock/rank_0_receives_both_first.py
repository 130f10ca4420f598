# hang: deadlock | change their order on one rank
if rank == 0:
    dist.recv(from_left, left)
    dist.recv(from_right, right)
    dist.send(strip[-1], right)
    dist.send(strip[0], left)
else:
    dist.send(strip[-1], right)
    dist.send(strip[0], left)
    dist.recv(from_left, left)
    dist.recv(from_right, right)
