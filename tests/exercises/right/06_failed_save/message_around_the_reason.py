# right: the message says what was to be saved, too, and which error it was
why = [None]
if not dist.get_rank():
    try:
        write(snapshot, path)
    except Exception as error:
        why = [f"rank 0 cannot save {path}: {error!r}"]
dist.broadcast_object_list(why)
if why[0]:
    raise SaveError(f"{why[0]}; no rank goes on")
