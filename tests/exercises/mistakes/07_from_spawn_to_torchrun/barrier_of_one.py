# hang: rank 0 | barrier | only some ranks reach
# [answer 2]
if dist.get_rank() == 0:
    torch.save(model.state_dict(), path)
    dist.barrier()
