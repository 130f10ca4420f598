# wrong value: holds more than weights
# [answer 2]
if dist.get_rank() == 0:
    torch.save(model, path)
dist.barrier()
