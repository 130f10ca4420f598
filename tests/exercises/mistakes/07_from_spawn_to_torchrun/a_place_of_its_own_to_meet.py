# wrong value: torchrun has set one already
# [answer 1]
dist.init_process_group(
    "gloo",
    init_method="tcp://127.0.0.1:12355",
    rank=int(os.environ["RANK"]),
    world_size=int(os.environ["WORLD_SIZE"]),
)
return choose_device(int(os.environ["LOCAL_RANK"]))
