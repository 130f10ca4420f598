# wrong value: the world_size given to init_process_group
# [answer 1]
rank = int(os.environ["RANK"])
dist.init_process_group("gloo", rank=rank, world_size=2)
return choose_device(int(os.environ["LOCAL_RANK"]))
