# wrong value: the world_size given to init_process_group
# [answer 1]
world_size = int(os.environ["LOCAL_WORLD_SIZE"])
dist.init_process_group(
    "gloo", rank=int(os.environ["RANK"]), world_size=world_size
)
return choose_device(int(os.environ["LOCAL_RANK"]))
