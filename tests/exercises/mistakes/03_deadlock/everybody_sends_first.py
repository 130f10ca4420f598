# hang: deadlock | waits in send | every rank sends first | rank 2
dist.send(strip[-1], right)
dist.send(strip[0], left)
dist.recv(from_left, left)
dist.recv(from_right, right)
