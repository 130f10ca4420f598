# wrong value: in epoch 0
# [answer 1]
generator = torch.Generator().manual_seed(seed * epoch)
return torch.randperm(size, generator=generator).tolist()
