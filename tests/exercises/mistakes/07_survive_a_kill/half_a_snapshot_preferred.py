# wrong value: started again later, rank | failed: line
# [answer 1]
temporary = path.with_name(path.name + ".tmp")
newest = temporary if temporary.exists() else path
if not newest.exists():
    return 0
snapshot = torch.load(newest, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["steps_run"]
