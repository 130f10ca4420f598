# right: only the sends are asynchronous
sends = [dist.isend(strip[-1], right), dist.isend(strip[0], left)]
dist.recv(from_left, left)
dist.recv(from_right, right)
for transfer in sends:
    transfer.wait()
