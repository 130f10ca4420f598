# ExitStack leaves; the work is waited for
from contextlib import ExitStack

with ExitStack() as stack:
    dist.init_process_group(
        "gloo",
        init_method=init_method,
        rank=int(environ["RANK"]),
        world_size=int(environ["WORLD_SIZE"]),
    )
    stack.callback(dist.destroy_process_group)
    total = torch.tensor([measure()], dtype=torch.float64)
    work = dist.all_reduce(total, async_op=True)
    work.wait()
    return total.tolist()[0]
