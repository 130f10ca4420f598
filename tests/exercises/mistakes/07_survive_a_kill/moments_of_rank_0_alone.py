# wrong value: after 10 steps and two kills
# [answer 1]
steps_run = torch.zeros((), dtype=torch.int64)
if dist.get_rank() == 0 and path.exists():
    snapshot = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    steps_run += snapshot["steps_run"]
dist.broadcast(steps_run, src=0)
return int(steps_run)
