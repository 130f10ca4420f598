# exception: setup joins the process group
# [answer 1]
dist.init_process_group("gloo", rank=world_size, world_size=rank)
