# wrong value: after load_snapshot, this rank's random numbers are not those
# [answer 3]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
for name in ("model", "optimizer", "scheduler"):
    getattr(training, name).load_state_dict(snapshot[name])
training.epoch = snapshot["epoch"]
training.steps_run = snapshot["steps_run"]
torch.manual_seed(SEED + dist.get_rank())
