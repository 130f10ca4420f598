# wrong value: after load_snapshot, this rank's random numbers are not those
# [answer 3]
import os

snapshot = torch.load(path, map_location="cpu", weights_only=True)
for name in ("model", "optimizer", "scheduler"):
    getattr(training, name).load_state_dict(snapshot[name])
training.epoch = snapshot["epoch"]
training.steps_run = snapshot["steps_run"]
torch.set_rng_state(snapshot["rng"][int(os.environ["LOCAL_RANK"])])
