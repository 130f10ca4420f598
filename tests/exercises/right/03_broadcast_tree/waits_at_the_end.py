# right: waits for the send of each round, a future for the receive
sends = []
if place < distance and place + distance < world_size:
    sends.append(dist.isend(tensor, (root + place + distance) % world_size))
if distance <= place < 2 * distance:
    work = dist.irecv(tensor, src=(root + place - distance) % world_size)
    work.wait()
for work in sends:
    assert work.wait() is not None
