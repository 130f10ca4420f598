# wrong value: restored this rank's random numbers, but something has drawn | its own generator
# [answer 1]
sampler.set_epoch(training.epoch)
batches = list(BatchSampler(sampler, training.batch_size, drop_last=False))
return DataLoader(
    training.dataset,
    batch_sampler=batches[training.steps_run :],
    generator=torch.default_generator,
)
