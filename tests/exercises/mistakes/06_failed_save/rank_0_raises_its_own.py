# wrong value: rank 0 | raised the writer's OSError | SaveError instead
why = [None]
caught = None
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why[0], caught = str(error), error
dist.broadcast_object_list(why, src=0)
if caught is not None:
    raise caught
if why[0] is not None:
    raise SaveError(why[0])
