# hang: rank 0: waits in all_reduce | only some ranks
total = torch.tensor(loss, dtype=torch.float64)
if dist.get_rank() == 0:
    dist.all_reduce(total)
return bool(total / dist.get_world_size() < target)
