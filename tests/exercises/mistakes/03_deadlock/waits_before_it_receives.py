# hang: deadlock | waits in send | every rank sends first
dist.isend(strip[-1], right).wait()
dist.isend(strip[0], left).wait()
dist.irecv(from_left, left).wait()
dist.irecv(from_right, right).wait()
