# wrong value: ranks 1 and 2 | this process is still in the process group
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
dist.init_process_group("gloo", init_method, rank=rank, world_size=world_size)
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()
finally:
    if rank == 0:
        dist.destroy_process_group()
