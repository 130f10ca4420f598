# wrong value: raised | still in the process group
dist.init_process_group("gloo", init_method=init_method, rank=int(environ["RANK"]), world_size=int(environ["WORLD_SIZE"]))
try:
    t = torch.tensor(measure(), dtype=torch.float64)
except Exception:
    dist.destroy_process_group()
    raise
dist.all_reduce(t)
dist.destroy_process_group()
return t.item()
