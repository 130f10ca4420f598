# wrong value: the world size of the group
# [answer 1]
dist.init_process_group("gloo", rank=0, world_size=1)
