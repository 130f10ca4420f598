# wrong value: the message on this rank after a failed save | ranks 1 and 2
import torch

failed = torch.zeros(1)
why = "rank 0 could not save"
if dist.get_rank() == 0:
    try:
        write(snapshot, path)
    except Exception as error:
        why = str(error)
        failed += 1
dist.broadcast(failed, src=0)
if failed:
    raise SaveError(why)
