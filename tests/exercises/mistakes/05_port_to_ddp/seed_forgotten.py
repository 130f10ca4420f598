# wrong value: seed=SEED
# [answer 2]
sampler = DistributedSampler(dataset, shuffle=True)
return DataLoader(dataset, batch_size, sampler=sampler)
