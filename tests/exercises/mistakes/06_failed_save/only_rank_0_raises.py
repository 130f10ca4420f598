# wrong value: no SaveError was raised on this rank | ranks 1 and 2
why = None
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why = str(error)
dist.barrier()
if why is not None:
    raise SaveError(why)
