# wrong value: images in a batch of this rank
# [answer 2]
sampler = DistributedSampler(dataset, shuffle=True, seed=SEED)
return DataLoader(dataset, batch_size // dist.get_world_size(), sampler=sampler)
