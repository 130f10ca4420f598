# wrong value: images that no rank reads
# [answer 2]
sampler = DistributedSampler(dataset, shuffle=True, seed=SEED + dist.get_rank())
return DataLoader(dataset, batch_size, sampler=sampler)
