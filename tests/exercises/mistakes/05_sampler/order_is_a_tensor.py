# wrong value: epoch_order | returned Tensor, expected list[int]
# [answer 1]
generator = torch.Generator().manual_seed(seed + epoch)
return torch.randperm(size, generator=generator)
