# right: rank and world size are read and passed on, the end is in a finally
# [answer 1]
rank, world_size = (int(os.environ[name]) for name in ("RANK", "WORLD_SIZE"))
dist.init_process_group("gloo", "env://", rank=rank, world_size=world_size)
local_rank = int(os.environ["LOCAL_RANK"])
return choose_device(local_rank)
# [answer 2]
if int(os.environ["RANK"]) == 0:
    torch.save(model.state_dict(), path)
dist.all_reduce(torch.zeros(1))
# [answer 3]
device = setup()
try:
    train(device, path)
finally:
    dist.destroy_process_group()
