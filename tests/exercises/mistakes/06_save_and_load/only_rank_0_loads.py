# wrong value: after loading | rank 1
# [answer 2]
epochs_run = torch.zeros(1, dtype=torch.int64)
if dist.get_rank() == 0:
    snapshot = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    epochs_run += snapshot["epochs_run"]
dist.broadcast(epochs_run, src=0)
return int(epochs_run)
