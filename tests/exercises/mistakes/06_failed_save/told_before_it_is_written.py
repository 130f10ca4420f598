# wrong value: what this rank finds in the file
why = [None]
if dist.get_rank() == 0:
    try:
        snapshot = dict(snapshot)
    except Exception as error:
        why[0] = str(error)
dist.broadcast_object_list(why, src=0)
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why[0] = str(error)
if why[0] is not None:
    raise SaveError(why[0])
