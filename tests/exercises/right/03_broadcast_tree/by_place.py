# right: partners computed from places, receive asked first
if place in range(distance, 2 * distance):
    dist.irecv(tensor, (place - distance + root) % world_size).wait()
elif place + distance in range(distance, min(2 * distance, world_size)):
    dist.isend(tensor, (place + distance + root) % world_size).wait()
