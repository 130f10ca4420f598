# right: a tag for each direction; futures and waits in reverse order
begun = [
    dist.irecv(from_right, src=right, tag=1),
    dist.irecv(from_left, src=left, tag=2),
    dist.isend(strip[0], dst=left, tag=1),
    dist.isend(strip[-1], dst=right, tag=2),
]
while begun:
    begun.pop().wait()
