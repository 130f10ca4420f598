# wrong value: has joined where os.environ says | pass init_method
import os

os.environ.update(environ)
dist.init_process_group("gloo")
try:
    number = torch.tensor(measure(), dtype=torch.float64)
    dist.all_reduce(number)
    return number.item()
finally:
    dist.destroy_process_group()
