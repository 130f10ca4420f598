# wrong value: rank, world size
# [answer 3]
part = dist.PrefixStore(environ["NODE_RANK"], store)
dist.init_process_group("gloo", store=part, rank=local_rank, world_size=nprocs)
return local_rank
