# wrong value: the message on this rank after a failed save | must contain the reason
why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why[0] = str(error).splitlines()[-1] if str(error) else "?"
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    raise SaveError(why[0])
