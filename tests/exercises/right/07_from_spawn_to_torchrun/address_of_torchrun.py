# right: what init_process_group reads by itself is read by hand
# [answer 1]
where = os.environ["MASTER_ADDR"] + ":" + os.environ["MASTER_PORT"]
rank, world_size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
device = choose_device(dist.get_node_local_rank())
dist.init_process_group("gloo", f"tcp://{where}", None, world_size, rank)
return device
