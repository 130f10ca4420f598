# wrong value: where measure raises a lookuperror | must raise
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
dist.init_process_group(
    "gloo", init_method=init_method, rank=rank, world_size=world_size
)
total = torch.zeros((), dtype=torch.float64)
try:
    total += measure()
    dist.all_reduce(total)
except Exception as error:
    print(f"rank {rank}: {error}")
dist.destroy_process_group()
return total.item()
