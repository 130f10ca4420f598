# wrong value: is '28': it must contain the reason, 'the device is full'
why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why[0] = str(error.args[0]) if error.args else ""
dist.broadcast_object_list(why)
if why[0] is not None:
    raise SaveError(why[0])
