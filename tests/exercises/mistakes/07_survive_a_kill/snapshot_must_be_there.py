# wrong value: at the first start | rank | filenotfounderror
# [answer 1]
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["steps_run"]
