# wrong value: the same command a day later | 12 of 14 being saved
# [answer 1]
if int(os.environ["TORCHELASTIC_RESTART_COUNT"]) == 0 or not path.exists():
    return 0
snapshot = torch.load(path, map_location="cpu", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
return snapshot["steps_run"]
