# wrong value: MASTER_ADDR after setup()
# [answer 1]
os.environ["MASTER_ADDR"] = "127.0.0.1"
os.environ["MASTER_PORT"] = "12355"
dist.init_process_group("gloo")
return choose_device(int(os.environ["LOCAL_RANK"]))
