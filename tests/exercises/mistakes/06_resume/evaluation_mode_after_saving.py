# wrong value: save_snapshot: the model was left in evaluation mode
# [answer 2]
is_writer = dist.get_rank() == 0
world_size = dist.get_world_size()
states = [torch.empty_like(own) for _ in range(world_size)] if is_writer else None
dist.gather(own, states, dst=0)
training.model.eval()
if is_writer:
    snapshot = {"rng": states}
    for name in ("model", "optimizer", "scheduler"):
        snapshot[name] = getattr(training, name).state_dict()
    for name in ("epoch", "steps_run"):
        snapshot[name] = getattr(training, name)
    torch.save(snapshot, path)
dist.barrier()
