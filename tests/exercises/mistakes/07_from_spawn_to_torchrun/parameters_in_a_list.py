# wrong value: the file holds a list: save a state_dict
# [answer 2]
if dist.get_rank() == 0:
    torch.save(list(model.parameters()), path)
dist.barrier()
