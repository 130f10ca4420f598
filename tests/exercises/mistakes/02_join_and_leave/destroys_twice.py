# exception: process group | destroy_process_group()
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method, rank=rank, world_size=world_size)
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(total)
    dist.destroy_process_group()
    return total.item()
finally:
    dist.destroy_process_group()
