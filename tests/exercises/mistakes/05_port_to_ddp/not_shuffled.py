# wrong value: the images are not shuffled
# [answer 2]
sampler = DistributedSampler(dataset, shuffle=False)
return DataLoader(dataset, batch_size, sampler=sampler)
