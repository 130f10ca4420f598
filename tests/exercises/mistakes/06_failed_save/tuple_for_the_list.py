# exception: 'tuple' object does not support item assignment | pass a list
box = (None,)
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        box = (f"{type(error).__name__}: {error}",)
dist.broadcast_object_list(box, src=0)
if box[0] is not None:
    raise SaveError(box[0])
