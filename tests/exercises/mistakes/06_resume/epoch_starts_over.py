# wrong value: after 2 steps | the batches of epoch 3
# [answer 1]
sampler.set_epoch(training.epoch)
batches = list(BatchSampler(sampler, training.batch_size, drop_last=False))
return DataLoader(
    training.dataset,
    batch_sampler=batches,
    generator=torch.Generator(),
)
