# wrong value: the model was in evaluation mode, and isn't after loading it
# [answer 2]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
model.train()
return snapshot["epochs_run"]
