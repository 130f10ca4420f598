# right: at the begin of an epoch, a run that goes on draws as one that never stopped
# [answer 1]
sampler.set_epoch(training.epoch)
batches = list(BatchSampler(sampler, training.batch_size, drop_last=False))
own = torch.Generator() if training.steps_run else None
return DataLoader(
    training.dataset, batch_sampler=batches[training.steps_run :], generator=own
)
