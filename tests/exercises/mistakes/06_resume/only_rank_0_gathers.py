# hang: gather | rank 0 | some ranks leave one out
# [answer 2]
if dist.get_rank() == 0:
    states = [torch.empty_like(own) for _ in range(dist.get_world_size())]
    dist.gather(own, states, dst=0)
    snapshot = {"rng": states}
    for name in ("model", "optimizer", "scheduler"):
        snapshot[name] = getattr(training, name).state_dict()
    for name in ("epoch", "steps_run"):
        snapshot[name] = getattr(training, name)
    torch.save(snapshot, path)
dist.barrier()
