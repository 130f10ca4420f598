# hang: rank 1 | rank 0 | have all called it
# [answer 1]
dist.init_process_group("gloo", rank=0, world_size=world_size)
