# wrong way: never waited for the Work of irecv | keep the Work
from_left.zero_(), from_right.zero_()
sends = [dist.isend(strip[-1].clone(), right), dist.isend(strip[0].clone(), left)]
receives = [dist.irecv(from_left, left), dist.irecv(from_right, right)]
for transfer in sends:
    transfer.wait()
