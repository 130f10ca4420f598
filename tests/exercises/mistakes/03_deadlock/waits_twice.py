# hang: deadlock | transfer.wait() | the second one never returns
sends = [dist.isend(strip[-1], right), dist.isend(strip[0], left)]
dist.recv(from_left, left)
dist.recv(from_right, right)
for transfer in sends + sends:
    transfer.wait()
