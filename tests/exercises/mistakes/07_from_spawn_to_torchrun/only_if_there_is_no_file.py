# wrong value: ranks that wrote: none
# [answer 2]
if int(os.environ["LOCAL_RANK"]) == 0 and not path.exists():
    torch.save(model.state_dict(), path)
dist.barrier()
