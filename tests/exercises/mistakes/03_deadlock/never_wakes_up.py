# hang: deadlock | tag
transfers = [
    dist.isend(strip[-1], right, tag=rank),
    dist.isend(strip[0], left, tag=rank),
    dist.irecv(from_left, left, tag=rank),
    dist.irecv(from_right, right, tag=rank),
]
for transfer in transfers:
    transfer.wait()
