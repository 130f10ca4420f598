# wrong value: gather_lengths
# [answer 1]
out = [torch.zeros(1) for _ in range(dist.get_world_size())]
dist.all_gather(out, torch.tensor([float(length)]))
return [int(t) for t in out]
