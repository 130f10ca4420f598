# wrong value: after 10 steps and two kills
# [answer 1]
if not path.exists():
    return 0
snapshot = torch.load(path, map_location="cpu", weights_only=True)
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["steps_run"]
