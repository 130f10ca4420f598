# wrong way: two neighbors are enough
edges = [torch.empty_like(strip[[0, -1]]) for _ in range(world_size)]
dist.all_gather(edges, strip[[0, -1]])
from_left, from_right = edges[left][1], edges[right][0]
