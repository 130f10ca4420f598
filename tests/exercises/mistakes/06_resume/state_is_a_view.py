# crash, torch>=2.9: set_rng_state | .clone()
# [answer 1]
from torch.utils.data import Subset

sampler.set_epoch(training.epoch)
left = list(sampler)[training.steps_run * training.batch_size :]
own = torch.Generator().manual_seed(1)
return DataLoader(Subset(training.dataset, left), training.batch_size, generator=own)
# [answer 2]
everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own)
if dist.get_rank() == 0:
    torch.save(
        {
            "states": [
                training.model.state_dict(),
                training.optimizer.state_dict(),
                training.scheduler.state_dict(),
            ],
            "place": [training.epoch, training.steps_run],
            "random": torch.stack(everyone),
        },
        path,
    )
dist.barrier()
# [answer 3]
saved = torch.load(path, weights_only=True)
things = (training.model, training.optimizer, training.scheduler)
for thing, state in zip(things, saved["states"]):
    thing.load_state_dict(state)
training.epoch, training.steps_run = saved["place"]
torch.set_rng_state(saved["random"][dist.get_rank()])
