# wrong value: after load_snapshot, this rank's random numbers are not those
# [answer 2]
states = [None] * dist.get_world_size()
dist.all_gather_object(states, own)
tag = torch.randint(1000, (1,)).item()
if dist.get_rank() == 0:
    snapshot = {
        n: getattr(training, n).state_dict()
        for n in ("model", "optimizer", "scheduler")
    }
    torch.save(
        dict(
            snapshot,
            epoch=training.epoch,
            steps_run=training.steps_run,
            rng=states,
            tag=tag,
        ),
        path,
    )
dist.barrier()
