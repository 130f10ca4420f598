# wrong value: how often each rank has written
why = [None]
if dist.get_rank() == 0:
    for _ in range(3):
        try:
            write(snapshot, path)
            why[0] = None
            break
        except Exception as error:
            why[0] = str(error)
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    raise SaveError(why[0])
