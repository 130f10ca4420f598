# wrong value: load_snapshot: the model was left in evaluation mode
# [answer 3]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
for name in ("model", "optimizer", "scheduler"):
    getattr(training, name).load_state_dict(snapshot[name])
training.model.eval()
training.epoch = snapshot["epoch"]
training.steps_run = snapshot["steps_run"]
torch.set_rng_state(snapshot["rng"][dist.get_rank()])
