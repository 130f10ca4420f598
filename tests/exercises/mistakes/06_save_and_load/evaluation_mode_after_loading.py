# wrong value: in evaluation mode after loading
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
model.eval()
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["epochs_run"]
