# hang: deadlock | tag 2 | use different tags
transfers = [
    dist.isend(strip[-1], right, tag=1),
    dist.isend(strip[0], left, tag=1),
    dist.irecv(from_left, left, tag=2),
    dist.irecv(from_right, right, tag=2),
]
for transfer in transfers:
    transfer.wait()
