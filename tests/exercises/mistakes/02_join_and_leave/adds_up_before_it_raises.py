# wrong value: measure raised on rank 1 | leave without waiting
dist.init_process_group("gloo", init_method=init_method, rank=int(environ["RANK"]), world_size=int(environ["WORLD_SIZE"]))
try:
    error = None
    try:
        n = measure()
    except Exception as e:
        error, n = e, 0.0
    t = torch.tensor(n, dtype=torch.float64)
    dist.all_reduce(t)
    if error is not None: raise error
    return t.item()
finally:
    dist.destroy_process_group()
