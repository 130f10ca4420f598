# wrong way: never waited for the Work of isend | keep the Work
dist.isend(strip[-1], right)
dist.isend(strip[0], left)
dist.recv(from_left, left)
dist.recv(from_right, right)
