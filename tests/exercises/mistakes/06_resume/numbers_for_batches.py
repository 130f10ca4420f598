# wrong value: what batches_to_come returns | cannot be read, 'int' object
# [answer 1]
sampler.set_epoch(training.epoch)
rest = list(sampler)[training.steps_run * training.batch_size :]
return DataLoader(training.dataset, batch_sampler=rest, generator=torch.Generator())
