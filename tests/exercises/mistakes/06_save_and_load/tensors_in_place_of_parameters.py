# wrong value: 3 steps after loading, SGD
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"], assign=True)
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"]
