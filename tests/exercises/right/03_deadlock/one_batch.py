# right: batch_isend_irecv, receives first
work = dist.batch_isend_irecv(
    [
        dist.P2POp(dist.irecv, from_left, left),
        dist.P2POp(dist.irecv, from_right, right),
        dist.P2POp(dist.isend, strip[-1], right),
        dist.P2POp(dist.isend, strip[0], left),
    ]
)
for transfer in work:
    transfer.wait()
