# wrong value: a DDP object was still alive
# [answer 3]
device = setup()
kept = DDP(nn.Linear(2, 2))
train(device, path)
dist.destroy_process_group()
