# wrong value: 3 steps after loading, SGD
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
state = optimizer.state_dict()
state["state"] = snapshot["optimizer"]["state"]
optimizer.load_state_dict(state)
return snapshot["epochs_run"]
