# hang: rank 0 | barrier | only some ranks reach
why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why[0] = str(error)
dist.broadcast_object_list(why, src=0)
if dist.get_rank() == 0 and why[0] is not None:
    raise SaveError(why[0])
dist.barrier()
if why[0] is not None:
    raise SaveError(why[0])
