# wrong value: batches_to_come returned generator, expected DataLoader
# [answer 1]
sampler.set_epoch(training.epoch)
order = list(sampler)[training.steps_run * training.batch_size :]
collate = torch.utils.data.default_collate
return (
    collate([training.dataset[i] for i in order[start : start + training.batch_size]])
    for start in range(0, len(order), training.batch_size)
)
