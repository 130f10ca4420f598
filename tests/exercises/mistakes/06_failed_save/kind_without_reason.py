# wrong value: the message on this rank after a failed save | must contain the reason
why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why[0] = type(error).__name__
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    raise SaveError(f"rank 0 could not save: {why[0]}")
