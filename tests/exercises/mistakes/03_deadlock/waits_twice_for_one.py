# hang: rank 0: waits at line 42: sending[0].wait() | the same send or receive twice
sending = [dist.isend(strip[-1], right), dist.isend(strip[0], left)]
dist.recv(from_left, left)
dist.recv(from_right, right)
for work in sending:
    sending[0].wait()
return from_left, from_right
