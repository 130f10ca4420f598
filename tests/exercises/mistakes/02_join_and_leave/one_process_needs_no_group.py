# wrong value: before this process had joined | a run of one process joins, too
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
if world_size == 1:
    return measure()
dist.init_process_group(
    "gloo", init_method=init_method, rank=rank, world_size=world_size
)
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()
finally:
    dist.destroy_process_group()
