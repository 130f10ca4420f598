# wrong value: not joined over store
# [answer 3]
rank, world_size = place_among_unequal(local_rank, nprocs, environ, store)
dist.init_process_group(
    "gloo", init_method="tcp://127.0.0.1:29517", rank=rank, world_size=world_size
)
return local_rank
