# crash: lists of different lengths | broadcast_object_list
why = []
if dist.get_rank() == 0:
    why = [None]
    try:
        write(snapshot, path)
    except Exception as error:
        why[0] = str(error)
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    raise SaveError(why[0])
