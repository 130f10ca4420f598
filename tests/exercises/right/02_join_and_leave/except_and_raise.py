# leaves in both branches
numbers = {key.lower(): int(environ[key]) for key in ("RANK", "WORLD_SIZE")}
dist.init_process_group("gloo", init_method, **numbers)
try:
    number = measure()
    total = torch.as_tensor(number, dtype=torch.float64).clone()
    dist.all_reduce(total)
except BaseException:
    dist.destroy_process_group()
    raise
dist.destroy_process_group()
return total.item()
