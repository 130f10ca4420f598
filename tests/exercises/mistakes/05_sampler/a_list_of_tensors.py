# wrong value: epoch_order | returned list of Tensor, expected list[int]
# [answer 1]
generator = torch.Generator().manual_seed(seed + epoch)
return list(torch.randperm(size, generator=generator))
