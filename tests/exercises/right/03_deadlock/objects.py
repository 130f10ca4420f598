# pickled rows, each to the one neighbor that needs it: the text forbids no more
def shift(row, to, source):
    told, heard = [row.clone()], [None]
    calls = [(dist.send_object_list, told, to), (dist.recv_object_list, heard, source)]
    for call, items, partner in calls if rank == 0 else calls[::-1]:
        call(items, partner)
    return heard[0]


return shift(strip[-1], right, left), shift(strip[0], left, right)
