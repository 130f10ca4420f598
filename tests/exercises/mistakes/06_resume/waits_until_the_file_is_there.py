# wrong value: before rank 0 had written
# [answer 2]
import time

everyone = [None] * dist.get_world_size()
dist.all_gather_object(everyone, own)
if dist.get_rank() == 0:
    snapshot = {"rng": everyone}
    for name in ("model", "optimizer", "scheduler"):
        snapshot[name] = getattr(training, name).state_dict()
    for name in ("epoch", "steps_run"):
        snapshot[name] = getattr(training, name)
    torch.save(snapshot, path)
while not path.exists():
    time.sleep(0.01)
