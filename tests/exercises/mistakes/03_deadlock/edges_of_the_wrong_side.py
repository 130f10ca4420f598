# wrong value: the row from the
transfers = [
    dist.isend(strip[0], right),
    dist.isend(strip[-1], left),
    dist.irecv(from_left, left),
    dist.irecv(from_right, right),
]
for transfer in transfers:
    transfer.wait()
