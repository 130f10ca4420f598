# exception: one sample for a number, none for [ | training.dataset[
# [answer 1]
sampler.set_epoch(training.epoch)
rest = list(sampler)[training.steps_run * training.batch_size :]
data, generator = training.dataset[rest], torch.Generator()
return DataLoader(data, training.batch_size, generator=generator)
