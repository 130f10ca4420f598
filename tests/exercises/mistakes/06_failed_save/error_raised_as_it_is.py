# wrong value: ranks 0, 1 and 2 | raised the writer's OSError | SaveError instead
# [answer 1]
why = [None]
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why[0] = error
dist.broadcast_object_list(why, src=0)
if why[0] is not None:
    raise why[0]
