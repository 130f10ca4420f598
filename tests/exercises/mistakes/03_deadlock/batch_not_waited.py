# wrong way: never waited for the Work of batch_isend_irecv | keep the Work
from_left.zero_(), from_right.zero_()
dist.batch_isend_irecv(
    [
        dist.P2POp(dist.irecv, from_left, left),
        dist.P2POp(dist.irecv, from_right, right),
        dist.P2POp(dist.isend, strip[-1].clone(), right),
        dist.P2POp(dist.isend, strip[0].clone(), left),
    ]
)
