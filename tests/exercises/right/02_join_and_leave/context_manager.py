# a context manager joins and leaves
from contextlib import contextmanager


@contextmanager
def group():
    dist.init_process_group(
        backend="gloo",
        init_method=init_method,
        world_size=int(environ["WORLD_SIZE"]),
        rank=int(environ["RANK"]),
    )
    try:
        yield
    finally:
        dist.destroy_process_group()


with group():
    total = torch.zeros(1, dtype=torch.float64) + measure()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
return float(total)
