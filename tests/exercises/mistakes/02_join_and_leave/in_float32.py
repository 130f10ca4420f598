# wrong value: is a sum in float32
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
dist.init_process_group(
    "gloo", init_method=init_method, rank=rank, world_size=world_size
)
try:
    total = torch.tensor(measure())
    dist.all_reduce(total)
    return total.item()
finally:
    dist.destroy_process_group()
