# wrong value: 3 steps after the snapshot, SGD
# [answer 3]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
for name in ("model", "scheduler"):
    getattr(training, name).load_state_dict(snapshot[name])
training.epoch = snapshot["epoch"]
training.steps_run = snapshot["steps_run"]
torch.set_rng_state(snapshot["rng"][dist.get_rank()])
