# wrong value: ran code that came with the file | weights_only=True
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=False)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"]
