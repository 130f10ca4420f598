# wrong value: no SaveError was raised on this rank
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        print(f"could not save: {error}")
dist.barrier()
