# right: asks for the device twice, and the writer says to all that the file is there
# [answer 1]
local_rank = int(os.environ.get("LOCAL_RANK", 0))
print(f"local rank {local_rank} computes on {choose_device(local_rank)}")
dist.init_process_group("gloo")
return choose_device(local_rank)
# [answer 2]
done = [False]
if dist.get_rank() == 0:
    torch.save(model.state_dict(), str(path))
    done = [True]
dist.broadcast_object_list(done, src=0)
assert done[0]
