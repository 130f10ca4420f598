# wrong value: the number of images of 22 that this rank reads
# [answer 2]
sampler = DistributedSampler(dataset, shuffle=True, seed=SEED)
return DataLoader(dataset, batch_size, sampler=sampler, drop_last=True)
