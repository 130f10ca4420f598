# wrong value: the batches of epoch | after 2 steps
# [answer 1]
sampler.set_epoch(training.epoch)
batches = list(BatchSampler(sampler, training.batch_size, drop_last=False))
return DataLoader(
    training.dataset,
    batch_sampler=batches[training.steps_run + (training.steps_run > 0) :],
    generator=torch.Generator(),
)
