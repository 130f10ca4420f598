# wrong value: still in the process group | rank 0: right
# [answer 3]
device = setup()
train(device, path)
if dist.get_rank() == 0:
    dist.destroy_process_group()
