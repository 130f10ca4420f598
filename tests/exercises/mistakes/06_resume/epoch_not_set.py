# wrong value: the batches of epoch 3 after 0 steps
# [answer 1]
batches = list(BatchSampler(sampler, training.batch_size, drop_last=False))
return DataLoader(
    training.dataset,
    batch_sampler=batches[training.steps_run :],
    generator=torch.Generator(),
)
