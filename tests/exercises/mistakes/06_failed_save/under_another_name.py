# wrong value: write was called with the path | snapshot.tmp
import os

why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, path.with_suffix(".tmp"))
        os.replace(path.with_suffix(".tmp"), path)
    except Exception as error:
        why[0] = str(error)
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    raise SaveError(why[0])
