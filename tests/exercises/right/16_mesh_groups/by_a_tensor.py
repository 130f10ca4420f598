# right: the grid as a tensor of ranks, and group by group in the order of first ranks
# [answer 1]
import torch

grid = torch.arange(math.prod(shape)).view(shape)
return tuple(int(i) for i in (grid == rank).nonzero()[0])
# [answer 2]
import torch

grid = torch.arange(math.prod(shape)).view(shape)
coordinate = list(coordinates(rank, shape))
coordinate[axis] = slice(None)
return grid[tuple(coordinate)].tolist()
# [answer 3]
done = set()
for rank in range(dist.get_world_size()):
    row = group_ranks(rank, shape, axis)
    if rank in done:
        continue
    done.update(row)
    group = dist.new_group(row)
    if dist.get_rank() in row:
        groups.append(group)
