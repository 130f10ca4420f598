# wrong value: Tensor | expected list
# [answer 2]
import torch

grid = torch.arange(math.prod(shape)).view(shape)
places = list(coordinates(rank, shape))
places[axis] = slice(None)
return grid[tuple(places)]
