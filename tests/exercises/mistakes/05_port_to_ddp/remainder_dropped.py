# wrong value: the number of images of 22 that this rank reads
# [answer 2]
sampler = DistributedSampler(dataset, shuffle=True, seed=SEED, drop_last=True)
return DataLoader(dataset, batch_size, sampler=sampler)
