# hang: deadlock | waits in recv | every rank receives first
dist.recv(from_left, left)
dist.recv(from_right, right)
dist.send(strip[-1], right)
dist.send(strip[0], left)
