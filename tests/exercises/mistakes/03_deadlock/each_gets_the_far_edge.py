# wrong value: that rank's first row, expected its last
works = [dist.irecv(from_left, left, tag=1), dist.irecv(from_right, right, tag=2), dist.isend(strip[0], right, tag=1), dist.isend(strip[-1], left, tag=2)]
[w.wait() for w in works]
return from_left, from_right
