# wrong value: Tensor | expected list
# [answer 2]
import torch

grid = torch.arange(math.prod(shape)).view(shape)
coordinate = list(coordinates(rank, shape))
coordinate[axis] = slice(None)
return grid[tuple(coordinate)]
