# wrong value: what batches_to_come returns | yields [ | batches of a dataset
# [answer 1]
sampler.set_epoch(training.epoch)
batches = list(BatchSampler(sampler, training.batch_size, drop_last=False))
return DataLoader(batches[training.steps_run :], batch_size=None)
