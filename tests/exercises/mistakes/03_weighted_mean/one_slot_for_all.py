# wrong value: [t] * world_size
pair = torch.stack([values.sum(), values.new_tensor(len(values))])
pairs = [torch.empty_like(pair)] * dist.get_world_size()
dist.all_gather(pairs, pair)
total, count = torch.stack(pairs).sum(0)
return total / count
