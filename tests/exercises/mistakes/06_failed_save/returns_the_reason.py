# wrong value: no SaveError was raised on this rank
why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why[0] = str(error)
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    return SaveError(why[0])
