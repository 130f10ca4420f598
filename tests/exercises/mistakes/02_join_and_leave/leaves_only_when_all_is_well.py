# wrong value: raised | still in the process group
dist.init_process_group(
    "gloo",
    init_method=init_method,
    rank=int(environ["RANK"]),
    world_size=int(environ["WORLD_SIZE"]),
)
total = torch.tensor(measure(), dtype=torch.float64)
dist.all_reduce(total)
dist.destroy_process_group()
return total.item()
