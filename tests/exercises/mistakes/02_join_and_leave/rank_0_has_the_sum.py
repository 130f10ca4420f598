# wrong value: the sum over the ranks | only one rank holds the result
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
dist.init_process_group(
    "gloo", init_method=init_method, rank=rank, world_size=world_size
)
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.reduce(total, dst=0)
    return total.item()
finally:
    dist.destroy_process_group()
