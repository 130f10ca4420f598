# exception: rank
dist.init_process_group(
    "gloo",
    init_method=init_method,
    rank=environ["RANK"],
    world_size=environ["WORLD_SIZE"],
)
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()
finally:
    dist.destroy_process_group()
