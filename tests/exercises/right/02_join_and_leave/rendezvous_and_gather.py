# the store by dist.rendezvous; the numbers are gathered and added up
rank, world_size = int(environ["RANK"]), int(environ["WORLD_SIZE"])
store, _, _ = next(dist.rendezvous(init_method, rank, world_size))
dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
try:
    mine = torch.tensor([measure()], dtype=torch.float64)
    everyone = torch.empty(world_size, dtype=torch.float64)
    dist.all_gather_into_tensor(everyone, mine)
    return everyone.sum().item()
finally:
    dist.destroy_process_group()
