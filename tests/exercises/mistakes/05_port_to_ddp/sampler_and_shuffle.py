# exception: sampler option is mutually exclusive with shuffle
# [answer 2]
sampler = DistributedSampler(dataset, seed=SEED)
return DataLoader(dataset, batch_size, shuffle=True, sampler=sampler)
