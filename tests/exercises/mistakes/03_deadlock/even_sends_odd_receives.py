# hang: deadlock | 3 ranks | change their order on one rank
# fine with an even number of ranks; with an odd one ranks 0 and W - 1 are both even
if rank % 2 == 0:
    dist.send(strip[-1], right)
    dist.send(strip[0], left)
    dist.recv(from_left, left)
    dist.recv(from_right, right)
else:
    dist.recv(from_left, left)
    dist.recv(from_right, right)
    dist.send(strip[-1], right)
    dist.send(strip[0], left)
