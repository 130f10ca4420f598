# wrong value: ranks that wrote: 0, 2
# [answer 2]
if int(os.environ["LOCAL_RANK"]) == 0:
    torch.save(model.state_dict(), path)
dist.barrier()
