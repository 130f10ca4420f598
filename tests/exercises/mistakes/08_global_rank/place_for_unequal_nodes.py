# hang: waits in init_process_group | have all called it
# [answer 3]
rank, world_size = place(local_rank, nprocs, environ)
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
return local_rank
