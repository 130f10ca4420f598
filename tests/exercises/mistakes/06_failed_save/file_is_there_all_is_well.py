# wrong value: what this rank is told of a save that failed | whatever file is there
why = ""
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why = str(error)
dist.barrier()
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, why)
if not path.exists():
    raise SaveError("".join(everyone))
