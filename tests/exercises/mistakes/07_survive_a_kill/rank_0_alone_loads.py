# wrong value: after a kill, the ranks waited | the same step
# [answer 1]
if dist.get_rank() != 0 or not path.exists():
    return 0
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["steps_run"]
