# wrong value: returned tuple (int, int) | the rank of the sender
sending = [dist.isend(strip[-1], right), dist.isend(strip[0], left)]
from_left = dist.recv(from_left, left)
from_right = dist.recv(from_right, right)
for work in sending:
    work.wait()
