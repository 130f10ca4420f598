# wrong value: the message on this rank after a failed save
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        print(f"could not save: {error}")
dist.barrier()
