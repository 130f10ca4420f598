# wrong value: the batches of epoch 0 after 0 steps
# [answer 1]
sampler.set_epoch(training.epoch)
indices = list(sampler)
to_come = indices[training.steps_run * training.batch_size :]
return DataLoader(
    torch.utils.data.Subset(training.dataset, to_come),
    training.batch_size,
    shuffle=True,
    generator=torch.Generator(),
)
