# hang: barrier | only some ranks reach
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        raise SaveError(str(error)) from error
dist.barrier()
