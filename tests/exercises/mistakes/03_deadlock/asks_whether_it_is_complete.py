# over the limit: had not ended | is_completed | stays False
import time

works = [
    dist.isend(strip[-1], right),
    dist.isend(strip[0], left),
    dist.irecv(from_left, left),
    dist.irecv(from_right, right),
]
while not all(work.is_completed() for work in works):
    time.sleep(0.01)
