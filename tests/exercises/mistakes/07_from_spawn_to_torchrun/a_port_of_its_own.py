# wrong value: init_process_group was given an address | torchrun has set one already
# [answer 1]
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
where = f"tcp://{os.environ['MASTER_ADDR']}:29500"
dist.init_process_group("gloo", where, rank=rank, world_size=world_size)
return choose_device(int(os.environ["LOCAL_RANK"]))
