# wrong value: after load_snapshot, training.epoch and training.steps_run are
# [answer 3]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
for name in ("model", "optimizer", "scheduler"):
    getattr(training, name).load_state_dict(snapshot[name])
training.epoch = snapshot["epoch"]
torch.set_rng_state(snapshot["rng"][dist.get_rank()])
