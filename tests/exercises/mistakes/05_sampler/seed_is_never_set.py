# wrong value: the order of 13 in epoch 0
# [answer 1]
generator = torch.Generator()
generator.seed()
return torch.randperm(size, generator=generator).tolist()
