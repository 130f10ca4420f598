# wrong value: must write the file path
# [answer 1]
snapshot = {
    "model": model.state_dict(),
    "optimizer": optimizer.state_dict(),
    "epochs_run": epochs_run,
    "rng": torch.get_rng_state(),
    "loader_rng": loader_generator.get_state(),
}
torch.save(snapshot, "snapshot.pt")
# [answer 2]
snapshot = torch.load("snapshot.pt", weights_only=True)
model.load_state_dict(snapshot["model"])
optimizer.load_state_dict(snapshot["optimizer"])
torch.set_rng_state(snapshot["rng"])
loader_generator.set_state(snapshot["loader_rng"])
return snapshot["epochs_run"]
