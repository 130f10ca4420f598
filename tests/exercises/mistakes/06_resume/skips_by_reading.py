# wrong way: samples were read | leave out indices
# [answer 1]
sampler.set_epoch(training.epoch)
loader = DataLoader(
    training.dataset,
    training.batch_size,
    sampler=sampler,
    generator=torch.Generator(),
)
to_come = iter(loader)
for _ in range(training.steps_run):
    next(to_come)
return to_come
