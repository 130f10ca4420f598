# wrong value: wrote a file | only rank 0 should
# [answer 2]
states = [torch.empty_like(own) for _ in range(dist.get_world_size())]
dist.all_gather(states, own)
snapshot = {"rng": states}
for name in ("model", "optimizer", "scheduler"):
    snapshot[name] = getattr(training, name).state_dict()
for name in ("epoch", "steps_run"):
    snapshot[name] = getattr(training, name)
torch.save(snapshot, path)
dist.barrier()
