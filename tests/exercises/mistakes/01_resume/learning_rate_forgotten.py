# wrong value: 2 epochs after the snapshot
# [answer 1]
snapshot = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict()["state"],
    "epochs_run": epochs_run,
    "rng": torch.get_rng_state(),
    "loader_rng": loader_generator.get_state(),
}
torch.save(snapshot, path)
# [answer 2]
snapshot = torch.load(path, weights_only=True)
model.load_state_dict(snapshot["model"])
fresh = optimizer.state_dict()
optimizer.load_state_dict({**fresh, "state": snapshot["optimizer"]})
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
