# exception: ValueError: Default process group | this process is in no group here
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
dist.init_process_group(
    "gloo", init_method=init_method, rank=rank, world_size=world_size
)
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(total)
finally:
    dist.destroy_process_group()
if dist.get_rank() == 0:
    print(total)
return total.item()
