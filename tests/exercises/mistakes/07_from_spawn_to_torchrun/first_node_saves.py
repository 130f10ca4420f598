# wrong value: ranks that wrote: 0, 1
# [answer 2]
if int(os.environ["GROUP_RANK"]) == 0:
    torch.save(model.state_dict(), path)
dist.barrier()
