# wrong value: 3 steps after loading, SGD
# [answer 2]
epochs_run = torch.zeros(1, dtype=torch.int64)
if dist.get_rank() == 0:
    snapshot = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(snapshot["model"])
    optimizer.load_state_dict(snapshot["optimizer"])
    epochs_run += snapshot["epochs_run"]
for tensor in [*model.state_dict().values(), epochs_run]:
    dist.broadcast(tensor, src=0)
return int(epochs_run)
