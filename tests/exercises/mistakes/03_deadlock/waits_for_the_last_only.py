# wrong way: never waited for the Work of | wait()
transfers = [
    dist.isend(strip[-1], right),
    dist.isend(strip[0], left),
    dist.irecv(from_left, left),
    dist.irecv(from_right, right),
]
transfers[2].wait()
transfers[3].wait()
