# wrong value: the batches of epoch 0 after 0 steps
# [answer 1]
sampler.set_epoch(training.epoch)
batches = list(BatchSampler(sampler, training.batch_size, drop_last=True))
return DataLoader(
    training.dataset,
    batch_sampler=batches[training.steps_run :],
    generator=torch.Generator(),
)
