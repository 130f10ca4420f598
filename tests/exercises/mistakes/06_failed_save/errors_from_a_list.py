# exception: rank 0 raised Quota | whatever its type
# [answer 1]
why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except (OSError, RuntimeError, ValueError) as error:
        why[0] = str(error)
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    raise SaveError(why[0])
