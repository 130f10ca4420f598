# wrong value: measure raised on rank 1 | leave without waiting
dist.init_process_group("gloo", init_method=init_method, rank=int(environ["RANK"]), world_size=int(environ["WORLD_SIZE"]))
try:
    t = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(t)
    return t.item()
finally:
    dist.barrier()
    dist.destroy_process_group()
