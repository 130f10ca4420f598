# wrong value: the rank given to init_process_group
# [answer 1]
local_rank = int(os.environ["LOCAL_RANK"])
dist.init_process_group("gloo", rank=local_rank, world_size=4)
return choose_device(local_rank)
