# wrong value: not joined over store
# [answer 3]
import os

rank, world_size = place_among_unequal(local_rank, nprocs, environ, store)
os.environ["RANK"], os.environ["WORLD_SIZE"] = str(rank), str(world_size)
dist.init_process_group("gloo")
return local_rank
