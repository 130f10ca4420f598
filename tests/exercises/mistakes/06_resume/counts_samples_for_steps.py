# wrong value: after 2 steps
# [answer 1]
sampler.set_epoch(training.epoch)
indices = list(sampler)[training.steps_run :]
batches = list(BatchSampler(indices, training.batch_size, drop_last=False))
return DataLoader(
    training.dataset, batch_sampler=batches, generator=torch.Generator()
)
