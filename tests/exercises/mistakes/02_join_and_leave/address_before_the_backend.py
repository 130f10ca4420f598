# exception: No rendezvous handler | takes the backend first
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
dist.init_process_group(init_method, "gloo", rank=rank, world_size=world_size)
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()
finally:
    dist.destroy_process_group()
