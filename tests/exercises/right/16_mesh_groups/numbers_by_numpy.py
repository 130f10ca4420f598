# right: places by numpy, strides, groups by first ranks
# [answer 1]
import numpy as np

return tuple(np.unravel_index(rank, shape))
# [answer 2]
stride = 1
for size in shape[axis + 1 :]:
    stride *= size
place = rank // stride % shape[axis]
return list(range(rank - place * stride, rank + (shape[axis] - place) * stride, stride))
# [answer 3]
me, found = dist.get_rank(), None
for first in range(dist.get_world_size()):
    if coordinates(first, shape)[axis] == 0:
        members = group_ranks(first, shape, axis)
        group = dist.new_group(ranks=members, backend="gloo")
        found = group if me in members else found
groups.append(found)
