# wrong value: failed: the model was in evaluation mode while it was trained
# [answer 1]
model.eval()
if not path.exists():
    return 0
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["steps_run"]
