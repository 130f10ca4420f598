# wrong value: what make_loader returns | yields tensor( | batches of a dataset
# [answer 2]
return DataLoader(list(DistributedSampler(dataset, seed=SEED)), batch_size)
