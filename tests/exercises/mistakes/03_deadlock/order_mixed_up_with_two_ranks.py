# wrong value: the two rows are swapped
# messages between the same two ranks arrive in the order in which they were sent
transfers = [
    dist.isend(strip[-1], right),
    dist.isend(strip[0], left),
    dist.irecv(from_right, right),
    dist.irecv(from_left, left),
]
for transfer in transfers:
    transfer.wait()
