# wrong way: never waited for the Work of | keep the Work
import time

dist.isend(strip[-1], right)
dist.isend(strip[0], left)
dist.irecv(from_left, left)
dist.irecv(from_right, right)
time.sleep(0.5)
