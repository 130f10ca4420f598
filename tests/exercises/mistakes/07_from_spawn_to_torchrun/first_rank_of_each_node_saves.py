# wrong value: ranks 0, 2 wrote
# [answer 2]
if int(os.environ["LOCAL_RANK"]) == 0:
    torch.save(model.state_dict(), path)
dist.barrier()
