# hang: use different tags | two ends of one message | tag 1
sending = [dist.isend(strip[-1], right), dist.isend(strip[0], left, tag=1)]
dist.recv(from_left, left, tag=1)
dist.recv(from_right, right)
for work in sending:
    work.wait()
return from_left, from_right
