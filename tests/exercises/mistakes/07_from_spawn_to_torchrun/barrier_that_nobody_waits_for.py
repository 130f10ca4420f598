# wrong way: never waited for the Work of barrier | keep the Work
# [answer 2]
if dist.get_rank() == 0:
    torch.save(model.state_dict(), path)
dist.barrier(async_op=True)
