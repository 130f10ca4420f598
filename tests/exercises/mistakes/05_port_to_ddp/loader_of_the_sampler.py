# wrong value: what make_loader returns | cannot be read | not subscriptable
# [answer 2]
return DataLoader(DistributedSampler(dataset, seed=SEED), batch_size)
