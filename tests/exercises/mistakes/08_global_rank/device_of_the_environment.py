# wrong value: the device of local rank
# [answer 3]
import os

rank, world_size = place_among_unequal(local_rank, nprocs, environ, store)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
return int(os.environ["LOCAL_RANK"]) + 1
