# right: the object itself is saved, and what it holds is copied
# [answer 2]
states = [torch.empty_like(own) for _ in range(dist.get_world_size())]
dist.all_gather(states, own)
if dist.get_rank() == 0:
    torch.save({"training": training, "rng": states}, path)
dist.barrier()
# [answer 3]
snapshot = torch.load(path, weights_only=False)
saved = snapshot["training"]
for name in ("model", "optimizer", "scheduler"):
    getattr(training, name).load_state_dict(getattr(saved, name).state_dict())
training.epoch, training.steps_run = saved.epoch, saved.steps_run
torch.set_rng_state(snapshot["rng"][dist.get_rank()])
