# wrong way: init_device_mesh | without asking
# [answer 3]
from torch.distributed.device_mesh import init_device_mesh

names = tuple(f"axis{number}" for number in range(len(shape)))
groups.append(init_device_mesh("cpu", shape, mesh_dim_names=names).get_group(axis))
