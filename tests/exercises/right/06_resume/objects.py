# right: objects gathered, a loop of its own over the indices
# [answer 1]
sampler.set_epoch(training.epoch)
to_come = list(sampler)[training.steps_run * training.batch_size :]
own = torch.Generator().manual_seed(training.epoch)
return DataLoader(training.dataset, training.batch_size, sampler=to_come, generator=own)
# [answer 2]
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own.tolist())
if dist.get_rank() == 0:
    parts = (training.model, training.optimizer, training.scheduler)
    place = (training.epoch, training.steps_run)
    torch.save(([part.state_dict() for part in parts], place, everyone), path)
dist.barrier()
# [answer 3]
states, place, everyone = torch.load(path, weights_only=True)
parts = (training.model, training.optimizer, training.scheduler)
for part, state in zip(parts, states):
    part.load_state_dict(state)
training.epoch, training.steps_run = place
torch.set_rng_state(torch.tensor(everyone[dist.get_rank()], dtype=torch.uint8))
