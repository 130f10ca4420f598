# exception: ValueError | gather_list | only the root gives a list
# [answer 2]
is_writer = dist.get_rank() == 0
world_size = dist.get_world_size()
states = [torch.empty_like(own) for _ in range(world_size)]
dist.gather(own, states, dst=0)
if is_writer:
    snapshot = {"rng": states}
    for name in ("model", "optimizer", "scheduler"):
        snapshot[name] = getattr(training, name).state_dict()
    for name in ("epoch", "steps_run"):
        snapshot[name] = getattr(training, name)
    torch.save(snapshot, path)
dist.barrier()
