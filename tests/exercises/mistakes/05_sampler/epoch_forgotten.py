# wrong value: in epoch 1
# [answer 1]
generator = torch.Generator().manual_seed(seed)
return torch.randperm(size, generator=generator).tolist()
