# wrong value: write was called with the path 'snapshot.pt'
why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, str(path))
    except Exception as error:
        why[0] = str(error)
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    raise SaveError(why[0])
