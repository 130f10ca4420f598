# wrong value: has shape [42] after step
# [answer 3]
every = torch.empty_like(whole)
dist.all_gather_into_tensor(every, self.shard)
offset = 0
for p in self.parameters:
    p.data = every[offset : offset + p.numel()]
    offset += p.numel()
