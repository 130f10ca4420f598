# wrong value: load_snapshot | returned Tensor, expected int
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return torch.tensor(snapshot["epochs_run"])
