# wrong value: of the gradients that were given, afterwards | 0 are in the list
# [answer 1]
while gradients:
    g = gradients.pop(0)
    out = torch.empty(len(g) // dist.get_world_size(), dtype=g.dtype)
    dist.reduce_scatter_tensor(out, g)
    shards.append(out / dist.get_world_size())
