# exception: rank parameter missing
import os

os.environ.update(environ)
dist.init_process_group("gloo", init_method=init_method)
try:
    total = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(total)
    return total.item()
finally:
    dist.destroy_process_group()
