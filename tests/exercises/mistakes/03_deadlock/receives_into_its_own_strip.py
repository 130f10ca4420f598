# wrong value: this rank's own strip
transfers = [
    dist.isend(strip[-1].clone(), right),
    dist.isend(strip[0].clone(), left),
    dist.irecv(strip[0], left),
    dist.irecv(strip[-1], right),
]
for transfer in transfers:
    transfer.wait()
from_left, from_right = strip[0].clone(), strip[-1].clone()
