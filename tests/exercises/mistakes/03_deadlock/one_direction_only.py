# wrong value: the row from the right
sending = dist.isend(strip[-1], right)
dist.recv(from_left, left)
sending.wait()
from_right = from_left.clone()
